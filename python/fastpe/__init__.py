from fastpe import _core
