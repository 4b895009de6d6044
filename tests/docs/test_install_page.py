"""The pages on installing and on several servers say what the code has."""

from jobman.engines.kubernetes.installation.bundle import files
from jobman.engines.kubernetes.installation.rights import AT_HOME, EVERYWHERE, WITH_JOBS
from jobman.engines.kubernetes.installation.site import Site, Storage
from jobman.engines.kubernetes.managed.leadership import EPOCH
from jobman.engines.kubernetes.managed.lease import Terms
from tests.docs.pages import code_in, rows, text_of


def test_the_rights_on_the_page_are_those_of_the_installation():
    shown = [
        (where, tuple(code_in(resource)), tuple(code_in(verbs)), purpose)
        for where, resource, verbs, purpose in rows("install.md", "<!-- rights -->")
    ]
    granted = [
        (
            where,
            (f"{right.resource}.{right.group}" if right.group else right.resource, *right.only),
            right.verbs,
            right.purpose,
        )
        for where, table in (("everywhere", EVERYWHERE), ("jobs", WITH_JOBS), ("server", AT_HOME))
        for right in table
    ]
    assert shown == granted


def test_the_files_on_the_page_are_those_that_are_written():
    shown = [code_in(row[0])[0] for row in rows("install.md", "## What is made")]
    assert sorted(shown) == sorted(files(Site(storage=Storage("1Gi"))))


def test_the_names_on_the_page_are_the_usual_ones():
    usual = {code_in(row[0])[0].partition(" ")[0]: row[2] for row in rows("install.md", "| option |")}
    site = Site()
    assert usual["--namespace"] == f"`{site.namespace}`"
    assert usual["--jobs-namespace"] == f"`{site.jobs_namespace}`"
    assert usual["--database-secret"] == f"`{site.database_secret}`"
    assert usual["--tls-secret"] == f"`{site.tls_secret}`"
    assert usual["--replicas"] == str(site.replicas)
    assert site.address in text_of("install.md")


def test_the_times_on_the_page_are_those_of_a_lease():
    page, terms = text_of("high-availability.md"), Terms()
    assert f"renewed every {terms.retry:.0f} s, and taken over {terms.lease} s after" in page
    assert f"acts for {terms.renew:.0f} s from" in page
    assert EPOCH in page
