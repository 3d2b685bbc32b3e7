"""What the server knows about a type that it does not have from the start."""

from onetrip.typeinfo import Context, TypeInfo, binary_array, checked, register_binary, register_loader

__all__ = ["Context", "TypeInfo", "binary_array", "checked", "register_binary", "register_loader"]
