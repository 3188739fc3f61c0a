"""Running and serving elsewhere: Apache Beam, Ray, Flower, and models for other runtimes."""
