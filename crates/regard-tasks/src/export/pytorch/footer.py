

def load(folder=pathlib.Path(__file__).parent):
    """The model with its weights."""
    model = Model()
    model.load_state_dict(load_file(pathlib.Path(folder) / "model.safetensors"))
    return model.eval()


# Numbers of f32 that are summed up in another order, relative to the largest.
TOLERANCE = 2e-4


def main():
    """What Regard answers for some made-up inputs, and how far this module is from it; fails where that is far."""
    check = load_file(pathlib.Path(__file__).parent / "check.safetensors")
    expected = check.pop("output")
    with torch.no_grad():
        output = load()(**check)
    if output.shape != expected.shape:
        sys.exit(f"the output has shape {list(output.shape)}, and should have {list(expected.shape)}")
    difference = (output - expected).abs()
    if "x" in check and "lengths" in check and difference.dim() == 3:
        # Past a sequence's length labels mean nothing.
        difference = difference * keep(check["lengths"], difference.shape[1])[..., None]
    largest, number = float(difference.max()), float(expected.abs().max())
    print(f"largest difference {largest:.1e}, largest number {number:.1e}")
    if not largest <= TOLERANCE * max(1.0, number):
        sys.exit("this module does not answer as Regard does")


if __name__ == "__main__":
    main()
