"""Rendered scenes of coloured solids, with questions about how many there are and exact answers.

    solid           what stands in a scene
    problem         a question, its answer, and what the scene has to show
    layout          where the solids stand
    sprite          a picture of one solid
    render          a picture of a scene
    source          rows of the dataset `clevr_count`, without a download
    __main__        `python -m grpo_datasets_vision.scenes OUT.jpg`: several scenes to look at

Drawn with Pillow and numpy; nothing is read from a file.
"""
