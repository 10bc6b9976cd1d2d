"""The loss: surrogate, ratio level and denominator, KL, importance correction. Tensors in, tensors out."""
