class RustGenerator: pass
