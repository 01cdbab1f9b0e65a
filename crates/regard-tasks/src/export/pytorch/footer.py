

def load(folder=pathlib.Path(__file__).parent):
    """The model with its weights."""
    model = Model()
    model.load_state_dict(load_file(pathlib.Path(folder) / "model.safetensors"))
    return model.eval()


if __name__ == "__main__":
    # What Regard answers for some made-up inputs, and how far this module is from it.
    check = load_file(pathlib.Path(__file__).parent / "check.safetensors")
    expected = check.pop("output")
    with torch.no_grad():
        output = load()(**check)
    print(f"largest difference {(output - expected).abs().max():.1e}, largest number {expected.abs().max():.1e}")
