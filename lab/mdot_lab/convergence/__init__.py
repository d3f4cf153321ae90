"""Steps to a target loss: small trainings, and a judge of `mdot converge`."""
