//! Sets the name by which programs find the shared library, if `make` gives one (`RESIDUA_SONAME`).

fn main() {
    println!("cargo::rerun-if-env-changed=RESIDUA_SONAME");
    if let Ok(name) = std::env::var("RESIDUA_SONAME") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{name}");
    }
}
