/* The other versions of these pages, by docs/publish.py: versions.js in the folder above
   calls `otherVersions` with the names of the folders beside this one. A script and not
   JSON, and no address, so that it works wherever the pages lie, on a disk too. Where there
   is none, as in a build of one's own, the version stays a plain text. */
(function () {
  const root = document.documentElement.dataset.content_root;
  if (root === undefined) return;
  const base = new URL(root, location.href);
  const page = location.href.slice(base.href.length).replace(/[?#].*$/, "");
  const here = decodeURIComponent(base.pathname.split("/").at(-2));

  async function go(name) {
    const front = new URL(`../${name}/index.html`, base);
    const same = new URL(`../${name}/${page}`, base);
    // a page that the other version has not, or nobody who can tell, as on a disk
    const found = await fetch(same, { method: "HEAD" }).catch(() => ({ ok: false }));
    location.href = found.ok ? same : front;
  }

  window.otherVersions = function (names) {
    if (!names.includes(here)) return;
    document.querySelectorAll(".versions").forEach((text) => {
      const list = document.createElement("select");
      list.className = "versions form-select form-select-sm";
      list.ariaLabel = "Version of the documentation";
      names.forEach((name) => list.add(new Option(name, name, false, name === here)));
      list.addEventListener("change", () => go(list.value));
      text.replaceWith(list);
    });
  };

  window.addEventListener("DOMContentLoaded", () => {
    const others = document.createElement("script");
    others.src = new URL("../versions.js", base).href;
    document.head.append(others);
  });
})();
