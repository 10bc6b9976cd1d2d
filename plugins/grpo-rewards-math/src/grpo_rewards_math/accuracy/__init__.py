"""Is an answer the reference's value? Finding both in their texts, reading them, comparing them."""
