"""From images to a certified model: scikit-learn's handwritten digits and a small convolutional network."""

from __future__ import annotations

from sklearn.datasets import load_digits

import reliablenet as rn


def main() -> None:
    digits = load_digits()
    images = (digits.images[:, None] / 16).astype("float32")  # (n, channels, height, width)
    known, new = slice(None, -100), slice(-100, None)

    clf = rn.ReliableClassifier(
        alpha=0.02,
        network="cnn5",
        augment="crops",  # digits may be moved a little, but not mirrored
        batch_size=64,
        random_state=0,
    ).fit(images[known], digits.target[known])

    certificate = clf.certificate_
    print("certified:", certificate.certified, "because", certificate.reason)
    print(f"acts on:   {certificate.coverage:.1%} of images, at confidence {clf.threshold_:.3f}")
    met = clf.evaluate(images[new], digits.target[new])
    print(f"100 new images: acted on {met.accepted}, {met.errors} of these wrongly")


if __name__ == "__main__":
    main()
