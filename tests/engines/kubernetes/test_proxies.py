"""Which proxy leads to a cluster."""

import pytest

from jobman.engines.kubernetes.proxies import proxy_for

PROXY = {"HTTPS_PROXY": "http://proxy:3128"}


def test_without_a_variable_there_is_no_proxy():
    assert proxy_for("https://one.example", {}) is None


def test_the_scheme_of_the_server_chooses_the_variable():
    both = {"HTTPS_PROXY": "http://tls:1", "HTTP_PROXY": "http://plain:2"}
    assert proxy_for("https://one.example", both) == "http://tls:1"
    assert proxy_for("http://one.example", both) == "http://plain:2"


def test_small_letters_and_a_proxy_without_a_scheme_will_do():
    assert proxy_for("https://one.example", {"https_proxy": "proxy:3128"}) == "http://proxy:3128"


@pytest.mark.parametrize("server", ["https://localhost:6443", "https://127.0.0.1:6443", "https://[::1]:6443"])
def test_this_machine_is_reached_without_a_proxy(server):
    assert proxy_for(server, PROXY) is None


@pytest.mark.parametrize(
    "exempt",
    [
        "*",
        "10.0.0.0/8",
        "10.1.2.3",
        "10.1.2.3:6443",
        "elsewhere, 10.1.2.3",
    ],
)
def test_an_address_can_be_exempt(exempt):
    assert proxy_for("https://10.1.2.3:6443", {**PROXY, "NO_PROXY": exempt}) is None


@pytest.mark.parametrize("exempt", ["11.0.0.0/8", "10.1.2.4", "10.1.2.3:443", "", ","])
def test_another_address_is_not(exempt):
    assert proxy_for("https://10.1.2.3:6443", {**PROXY, "NO_PROXY": exempt}) == "http://proxy:3128"


@pytest.mark.parametrize(
    "exempt", ["site.example", ".site.example", "*.site.example", "K8S.Site.Example", "site.example:443"]
)
def test_a_name_exempts_what_is_below_it(exempt):
    assert proxy_for("https://k8s.site.example", {**PROXY, "no_proxy": exempt}) is None


@pytest.mark.parametrize("exempt", ["example.site", "te.example", "site.example:6443", ".k8s.site.example"])
def test_a_name_exempts_nothing_else(exempt):
    assert proxy_for("https://k8s.site.example", {**PROXY, "no_proxy": exempt}) == "http://proxy:3128"


def test_an_address_of_the_newer_internet_can_be_exempt_with_its_port():
    assert proxy_for("https://[fd00::1]:6443", {**PROXY, "NO_PROXY": "[fd00::1]:6443"}) is None
    assert proxy_for("https://[fd00::1]:6443", {**PROXY, "NO_PROXY": "fd00::/8"}) is None
    assert proxy_for("https://[fd00::1]:6443", {**PROXY, "NO_PROXY": "[fd00::1]:1"}) is not None
