//! Sets the name under which programs find the shared library (`RESIDUA_SONAME`), if `make` gives one.

fn main() {
    println!("cargo::rerun-if-env-changed=RESIDUA_SONAME");
    if let Ok(name) = std::env::var("RESIDUA_SONAME") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{name}");
    }
}
