kiln --version
