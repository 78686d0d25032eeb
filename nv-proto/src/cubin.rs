//! Cubins: the ELF files that NVIDIA's compilers make.
