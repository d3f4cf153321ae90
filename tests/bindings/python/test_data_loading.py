"""mdot.loader_rates: two measured points, and the step that follows."""

import unittest

import support

import mdot


class LoaderRates(support.TestCase):
    def rate(self, rates: "dict[str, float]", cpus: float) -> float:
        """Samples per second, as a prediction for one sample has them."""
        answer = mdot.predict(mdot.Job.read("resnet50"), "A100", 1, cpus=cpus, **rates)
        return 1000 / answer.loader_ms

    def test_rates_pass_through_both_points(self) -> None:
        for few, slow, many, fast in ((4, 800, 16, 2000), (1, 10, 3, 29), (2, 100, 4, 101), (0.5, 7, 64, 300)):
            with self.subTest(few=few, slow=slow, many=many, fast=fast):
                rates = mdot.loader_rates({many: fast, few: slow})
                self.assertAlmostEqual(self.rate(rates, few), slow, delta=1e-6 * slow)
                self.assertAlmostEqual(self.rate(rates, many), fast, delta=1e-6 * fast)
                self.assertTrue(slow < self.rate(rates, (few + many) / 2) < fast < self.rate(rates, 2 * many))

    def test_rates_that_contradict_the_form_give_a_mean(self) -> None:
        proportional = mdot.loader_rates({1: 100, 4: 900})
        self.assertAlmostEqual(self.rate(proportional, 2), 300, delta=1e-3)
        for fast in (400, 100):
            self.assertAlmostEqual(self.rate(mdot.loader_rates({1: 400, 4: fast}), 9), (400 * fast) ** 0.5, delta=1e-3)

    def test_wrong_points_are_refused(self) -> None:
        numbers = ({4: 800}, {4: 800, 8: 0}, {-1: 5, 2: 6}, {1: 2, 2: 3, 3: 4}, {1: float("nan"), 2: 3}, {True: 3, 4: 5}, {2: 3, 4: True})
        for measured in (*numbers, {}, {"4": 800, 16: 900}, [1, 2], None):
            with self.subTest(measured=measured), self.assertRaises(mdot.InvalidArgumentError):
                mdot.loader_rates(measured)

    def test_a_measured_wait_is_stated(self) -> None:
        """A row whose loaders explain its step leaves the GPU's time as it is, and answers say it."""
        job = mdot.Job.read("resnet50")
        slow = mdot.predict(job, "A100", 64, loader_rate=100)
        self.assertAlmostEqual(slow.step_ms, 640, delta=1e-3)
        row = mdot.Measurement(job, slow.configuration, ms=650)
        predictor = mdot.Predictor(calibration=mdot.Calibration.measured(mdot.Predictor(), [row]))
        plain = mdot.predict(job, "A100", 64)
        with self.assertWarns(mdot.WaitedForDataWarning):
            answer = predictor.predict(job, "A100", 64)
        self.assertAlmostEqual(answer.step_ms, plain.step_ms, delta=1e-6)
        self.assertNotIn("waited-for-data", predictor.predict(job, "A100", 64, loader_rate=100).warnings)


if __name__ == "__main__":
    unittest.main()
