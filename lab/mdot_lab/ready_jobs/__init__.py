"""Makes the data of mdot's ready jobs (weights/jobs): descriptions of families of networks, and traced networks."""
