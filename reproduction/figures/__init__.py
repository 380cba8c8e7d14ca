"""The paper's two figures: learning curves by noise level, and its comparison with other methods."""
