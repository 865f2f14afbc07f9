//! From triplets to CSR.
