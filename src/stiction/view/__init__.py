"""The live page: a scene simulated, or a trajectory replayed, in the browser.

    session = Live(lambda: scenes.load("pinch"), beside="mujoco")
    with stiction.view.page.Page(session) as page:      # needs the extra `view`
        print(page.url)
        page.wait()

`Live` and `Replay` hold what is shown and know no browser; `page` draws them with viser and
mjviser, which are imported only there.
"""

from stiction.record.contacts import Contacts
from stiction.view.live import Live
from stiction.view.replay import Replay
from stiction.view.session import Session

__all__ = ["Contacts", "Live", "Replay", "Session"]


def __dir__() -> list[str]:
    return __all__
