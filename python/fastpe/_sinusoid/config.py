def use_of(model_type: str) -> str:
    return ""
