//! SASS: instruction words to decoded instructions.
