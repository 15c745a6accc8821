# SPDX-License-Identifier: Apache-2.0
"""The implementation of the package. Nothing in here is public.

Written in Python, but part of ``tvm_ffi.core``, to which `install` adds it:

- `objects`: class `Object`, pickling, text of objects
- `text`: `String` and `Bytes`
- `type_members`, `type_info`: what the type table says about types, their fields and methods
- `type_registration`: which class stands for which type; types defined in Python
- `fallback_classes`: classes for types that no class is registered for
- `field_layout`: where the fields of a type defined in Python are in its objects
- `errors`, `tracebacks`: exceptions for errors from C++
- `device_types`, `libraries`: device types, other array libraries and their element types

Used without ``tvm_ffi.core``:

- `conflicts`: other owners of the directory ``tvm_ffi``, and other runtimes in the process

The modules of ``tvm_ffi`` whose names start with an underscore have names that other packages use.
"""
