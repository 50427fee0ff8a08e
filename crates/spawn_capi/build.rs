//! Gives the shared library its name for the linker: programs ask for the version of the ABI that they were built with.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libsshoal_spawn.so.0");
}
