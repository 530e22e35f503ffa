"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const picture = byId("picture"), ring = byId("ring"), body = byId("table").tBodies[0];
  // Names are read from the page, in its order; all else is numbers in this order.
  const names = [...body.querySelectorAll("i")].map((each) => each.textContent);
  // What supports a cluster is read there, too; of other levels it is not known.
  const evidence = new Map([...body.rows].map((row) => [row.dataset.cluster, [...row.querySelectorAll(".evidence")].map((each) => each.textContent)]));
  const [none = []] = evidence.values();
  const support = (key) => none.map((_, i) => element("td", (level === data.level && (evidence.get(key) || [])[i]) || "-"));
  let level = data.level, chosen = null, node = null;
  // Zooming moves the places, not the box: marks stay as large as they are.
  const box = picture.viewBox.baseVal, whole = { x: 0, y: 0, scale: 1 };
  const radius = -data.shapes[0][0][0];
  let view = whole;
  const at = (i) => [(data.places[2 * i] - view.x) * view.scale, (data.places[2 * i + 1] - view.y) * view.scale];
  const svg = (tag, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    return made;
  };
  const element = (tag, text) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const short = (value) => (value === null ? "-" : Number(value.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 12 }));
  const tenth = (value) => Math.round(value * 10) / 10;
  const mark = ([colour, shape], x, y) => {
    const [[dx, dy], path] = data.shapes[shape];
    const line = path.includes("m");
    return [`M${tenth(x + dx)} ${tenth(y + dy)}${path}`, line ? { fill: "none", stroke: colour } : { fill: colour }];
  };
  const membersOf = (labels, key = (label) => label) => {
    const found = new Map();
    labels.forEach((label, i) => {
      const place = key(label);
      if (found.has(place)) found.get(place).push(i);
      else found.set(place, [i]);
    });
    return found;
  };
  for (const each of data.levels) each.sizes = new Map(each.clusters.map(([label, size]) => [label, size]));
  // Small clusters of many share one row and one look.
  const rowOf = (label) => (label < 0 ? "-1" : data.levels[level].sizes.has(label) ? String(label) : "rest");
  const isAlone = (label) => {
    const { sizes, rest } = data.levels[level];
    return sizes.has(label) ? sizes.get(label) === 1 : rest[0] === rest[1];
  };
  const lookOf = (label) => {
    const { own, alone, others, unclustered } = data.levels[level].looks;
    if (label < 0) return unclustered;
    return own[label] || (isAlone(label) ? alone : others);
  };
  const marks = (nodes) => {
    let path = "", attributes = {};
    for (const i of nodes) {
      const [part, style] = mark(lookOf(data.levels[level].labels[i]), ...at(i));
      path += part;
      attributes = style;
    }
    return svg("path", { d: path, ...attributes });
  };

  function drawPicture() {
    const { labels, looks, clusters, sizes, discs } = data.levels[level];
    const shapes = byId("shapes"), tags = byId("tags"), grounds = byId("grounds");
    for (const group of [shapes, tags, grounds]) if (group) group.replaceChildren();
    const tag = (label, x, y) => {
      const text = svg("text", { x, y });
      text.textContent = label;
      tags.append(text);
    };
    const add = (label, title, path) => {
      const group = svg("g", { class: "cluster", "aria-label": title });
      if (label !== null) {
        group.dataset.cluster = label;
        group.setAttribute("tabindex", 0);
        group.setAttribute("role", "button");
      }
      const words = svg("title", {});
      words.textContent = title;
      group.append(words, path);
      shapes.append(group);
    };
    const title = (label) => `cluster ${label}: ${sizes.get(label).toLocaleString("en")} nodes`;
    const tagged = new Set(clusters.slice(0, data.most_tags).map(([label]) => label));
    if (data.aggregated) {
      discs.forEach(([label, colour, path, x, y]) => {
        add(label, label === null ? "other nodes" : title(label), svg("path", { d: path, fill: colour }));
        if (label !== null && tagged.has(label)) tag(label, x, y);
      });
      return;
    }
    const shared = (label) => (label < 0 ? "unclustered nodes" : isAlone(label) ? "nodes alone" : "smaller clusters");
    for (const [key, nodes] of membersOf(labels, (label) => (label in looks.own ? label : shared(label)))) {
      if (typeof key === "string") {
        add(null, key, marks(nodes));
        continue;
      }
      add(key, title(key), marks(nodes));
      if (grounds) {
        const dots = nodes.map((i) => `M${at(i).map(tenth).join(" ")}h0`).join("");
        grounds.append(svg("path", { d: dots, stroke: looks.own[key][0], "stroke-width": data.halo * view.scale }));
      }
      if (!tagged.has(key)) continue;
      const middle = [0, 1].map((axis) => nodes.reduce((sum, i) => sum + at(i)[axis], 0) / nodes.length);
      const away = (i) => (at(i)[0] - middle[0]) ** 2 + (at(i)[1] - middle[1]) ** 2;
      const [left, top] = at(nodes.reduce((best, i) => (away(i) < away(best) ? i : best)));
      tag(key, Math.round(left), Math.round(top) - data.tag_above);
    }
    placeTags();
    drawBar();
  }

  // A number is moved to where it covers no mark, if there is such a place near it.
  function placeTags() {
    if (data.aggregated || names.length > 3000) return;
    const taken = names.map((_, i) => [...at(i), radius, radius]);
    for (const text of byId("tags").children) {
      const { width, height } = text.getBBox();
      const x = Number(text.getAttribute("x")), y = Number(text.getAttribute("y"));
      const free = ([left, top]) => left > width / 2 && left < box.width - width / 2 && top > height / 2 && top < box.height - height / 2 &&
        taken.every(([a, b, w, h]) => Math.abs(a - left) > w + width / 2 || Math.abs(b - top) > h + height / 2);
      const places = [[x, y]];
      for (let away = 12; away <= 120; away += 12)
        for (let turn = 0; turn < 16; turn++) places.push([x + away * Math.sin((turn * Math.PI) / 8), y - away * Math.cos((turn * Math.PI) / 8)]);
      const [left, top] = places.find(free) || places[0];
      text.setAttribute("x", tenth(left));
      text.setAttribute("y", tenth(top));
      taken.push([left, top, width / 2, height / 2]);
    }
  }
  function drawBar() {
    if (data.per_pixel === null) return;
    const [path, text] = byId("bar").children, per = data.per_pixel / view.scale, longest = (per * box.width) / 6;
    const power = 10 ** Math.floor(Math.log10(longest)), length = [5, 2, 1].map((part) => part * power).find((each) => each <= longest);
    path.setAttribute("d", `M25 ${box.height - 22}v6h${tenth(length / per)}v-6`);
    text.textContent = Number(length.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 12 }) + (text.textContent.endsWith(" km") ? " km" : "");
  }

  // Names are written beside nodes where they cover nothing; zooming in makes space for more.
  function writeNames() {
    const group = byId("names"), labels = data.levels[level].labels, taken = [], seen = [];
    group.replaceChildren();
    if (data.aggregated) return;
    const size = (12 * box.width) / Math.max(picture.clientWidth, 1);
    labels.forEach((label, i) => {
      const [x, y] = at(i);
      if (x < 0 || y < 0 || x > box.width || y > box.height) return;
      taken.push([x - radius, y - radius, x + radius, y + radius]);
      if (chosen === null || label === chosen) seen.push([i, x, y]);
    });
    if (seen.length > 300) return;
    for (const text of byId("tags").children) {
      const { x, y, width, height } = text.getBBox();
      taken.push([x, y, x + width, y + height]);
    }
    group.setAttribute("font-size", tenth(size));
    const free = ([left, top, right, bottom]) =>
      left > 0 && right < box.width &&
      !taken.some((other) => left < other[2] && other[0] < right && top < other[3] && other[1] < bottom);
    for (const [i, x, y] of seen) {
      const width = 0.6 * size * names[i].length, low = y - 0.6 * size, away = i === node ? 18 : radius + 3;
      const right = [x + away, low, x + away + width, low + 1.2 * size];
      const left = [x - away - width, low, x - away, low + 1.2 * size];
      const spot = [right, left].find(free);
      if (!spot) continue;
      taken.push(spot);
      const made = svg("text", { x: tenth(spot === right ? x + away : x - away), y: tenth(y) });
      if (spot === left) made.setAttribute("class", "left");
      made.textContent = names[i];
      group.append(made);
    }
  }
  const hover = byId("hover");
  picture.addEventListener("pointermove", (event) => {
    hover.textContent = "";
    if (data.aggregated) return;
    const ctm = picture.getScreenCTM().inverse(), reach = 10 * ctm.a;
    const x = ctm.a * event.clientX + ctm.e, y = ctm.d * event.clientY + ctm.f;
    let best = -1, nearest = reach * reach + 0.1;
    for (let i = 0; i < names.length; i++) {
      const [left, top] = at(i), away = (left - x) ** 2 + (top - y) ** 2;
      if (away < nearest) [best, nearest] = [i, away];
    }
    if (best < 0) return;
    const [left, top] = at(best), label = data.levels[level].labels[best];
    hover.textContent = `${names[best]} (${label < 0 ? "unclustered" : `cluster ${label}`})`;
    hover.setAttribute("font-size", tenth(14 * ctm.a));
    const end = left > box.width / 2;
    hover.setAttribute("text-anchor", end ? "end" : "start");
    hover.setAttribute("x", left + (end ? -14 : 14));
    hover.setAttribute("y", top);
  });
  picture.addEventListener("pointerleave", () => (hover.textContent = ""));

  function fillTable() {
    const { labels, clusters, rest } = data.levels[level], members = membersOf(labels, rowOf);
    const rows = clusters.map(([label, size, within, across]) => {
      const row = element("tr"), head = element("th"), cell = element("td");
      row.dataset.cluster = label;
      head.scope = "row";
      const small = svg("svg", { class: "mark", viewBox: `${-1.5 * radius} ${-1.5 * radius} ${3 * radius} ${3 * radius}`, "aria-hidden": "true" });
      const [path, attributes] = mark(lookOf(label), 0, 0);
      small.append(svg("path", { d: path, ...attributes }));
      head.append(small, String(label));
      const nodes = members.get(String(label)) || [];
      let list = cell;
      if (nodes.length > 8) {
        list = element("details");
        list.append(element("summary", `${size.toLocaleString("en")} nodes`));
        cell.append(list);
      }
      for (const i of nodes) list.append(element("i", names[i]), " ");
      if (size > nodes.length) list.append(`and ${size - nodes.length} more`);
      row.append(head, element("td", size.toLocaleString("en")), element("td", short(within)), element("td", short(across)), ...support(String(label)), cell);
      return row;
    });
    const together = (key, heading, size, words) => {
      const row = element("tr"), head = element("th", heading), cell = element("td"), list = element("details");
      const nodes = members.get(key) || [];
      row.dataset.cluster = key;
      head.scope = "row";
      list.append(element("summary", words));
      for (const i of nodes) list.append(element("i", names[i]), " ");
      if (size > nodes.length) list.append(`and ${(size - nodes.length).toLocaleString("en")} more`);
      cell.append(list);
      row.append(head, element("td", size.toLocaleString("en")), element("td", "-"), element("td", "-"), ...support(key), cell);
      rows.push(row);
    };
    if (rest[0]) together("rest", "others", rest[1], `${rest[0].toLocaleString("en")} smaller clusters`);
    if (members.has("-1")) together("-1", "none", members.get("-1").length, "unclustered nodes");
    body.replaceChildren(...rows);
    headRows();
    sorted = { key: "size", up: false };
    showSort();
  }

  // Clusters are chosen in the picture or by the number in a row.
  function headRows() {
    for (const row of body.rows) {
      const label = Number(row.dataset.cluster), head = row.cells[0];
      if (!(label >= 0)) continue;
      const button = element("button", label);
      button.type = "button";
      button.setAttribute("aria-pressed", "false");
      button.title = "Highlight this cluster";
      button.addEventListener("click", () => choose(chosen === label ? null : label));
      head.lastChild.replaceWith(button);
    }
  }
  // Only the box of the table is scrolled, not the page.
  function bring(wanted) {
    if (!wanted) return;
    const box = byId("rows"), [above, below] = [byId("table").tHead, wanted].map((each) => each.getBoundingClientRect());
    const low = box.getBoundingClientRect().bottom;
    if (below.top < above.bottom || below.top + 20 > low) box.scrollTop += below.top - above.bottom;
  }
  function choose(label, found = null) {
    chosen = label;
    node = found;
    byId("zoom").disabled = data.aggregated || label === null;
    picture.classList.toggle("chosen", label !== null);
    let drawn = false;
    for (const group of picture.querySelectorAll(".cluster")) {
      const on = label !== null && group.dataset.cluster === String(label);
      group.classList.toggle("on", on);
      drawn ||= on;
    }
    byId("extra").replaceChildren();
    if (label !== null && !drawn && !data.aggregated) {
      byId("extra").append(marks((membersOf(data.levels[level].labels).get(label) || [])));
    }
    const size = label === null ? 0 : data.levels[level].sizes.get(label);
    for (const row of body.rows) {
      const on = label !== null && row.dataset.cluster === rowOf(label);
      row.classList.toggle("on", on);
      const button = row.querySelector("button");
      if (button) button.setAttribute("aria-pressed", String(on));
    }
    for (const hit of body.querySelectorAll("i.hit")) hit.classList.remove("hit");
    bring(body.querySelector("tr.on"));
    const visible = found !== null && data.places.length > 0;
    ring.setAttribute("visibility", visible ? "visible" : "hidden");
    if (visible) {
      const [x, y] = at(found);
      ring.setAttribute("cx", x);
      ring.setAttribute("cy", y);
    }
    if (found !== null) {
      const row = body.querySelector(`tr[data-cluster="${rowOf(label)}"]`);
      const name = row && [...row.querySelectorAll("i")].find((each) => each.textContent === names[found]);
      if (name) {
        const closed = name.closest("details");
        if (closed) closed.open = true;
        name.classList.add("hit");
        bring(name);
      }
    }
    writeNames();
    const where = label === null ? "" : label < 0 ? "unclustered" : `cluster ${label}${size ? `, ${size.toLocaleString("en")} nodes` : ""}`;
    byId("status").textContent = found === null ? where : `${names[found]}: ${where}`;
  }
  const pick = (target) => {
    const group = target.closest("[data-cluster]");
    const label = group && Number(group.dataset.cluster);
    choose(group === null || chosen === label ? null : label);
  };
  picture.addEventListener("click", (event) => pick(event.target));
  picture.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      pick(event.target);
    }
  });

  // Sorting: the values are those of the data, not their texts.
  let sorted = { key: "size", up: false };
  const columns = { label: 0, size: 1, within: 2, across: 3 };
  function showSort() {
    for (const head of byId("table").tHead.rows[0].cells) {
      if (!head.dataset.key) continue;
      const on = head.dataset.key === sorted.key;
      head.setAttribute("aria-sort", on ? (sorted.up ? "ascending" : "descending") : "none");
    }
  }
  function sortBy(key) {
    sorted = { key, up: sorted.key === key ? !sorted.up : key !== "size" };
    const place = columns[key];
    const values = new Map(data.levels[level].clusters.map((each) => [String(each[0]), each[place]]));
    const value = (row) => values.get(row.dataset.cluster) ?? Infinity;
    const rows = [...body.rows].sort((a, b) => {
      const first = value(a), second = value(b);
      if (first === second) return 0;
      if (first === Infinity || second === Infinity) return first === Infinity ? 1 : -1;
      return sorted.up ? first - second : second - first;
    });
    body.replaceChildren(...rows);
    showSort();
  }
  for (const head of byId("table").tHead.rows[0].cells) {
    if (!head.dataset.key) continue;
    const button = element("button", head.textContent);
    button.type = "button";
    button.addEventListener("click", () => sortBy(head.dataset.key));
    head.replaceChildren(button);
  }

  const fold = (text) => text.toLocaleLowerCase();
  byId("search").addEventListener("input", (event) => {
    const wanted = fold(event.target.value);
    const hits = new Set();
    const labels = data.levels[level].labels;
    names.forEach((name, i) => fold(name).includes(wanted) && hits.add(rowOf(labels[i])));
    for (const row of body.rows) {
      const label = row.dataset.cluster;
      row.hidden = wanted !== "" && !hits.has(label) && label !== wanted;
    }
  });
  byId("find").addEventListener("input", (event) => {
    const wanted = fold(event.target.value), found = [];
    if (wanted !== "") {
      names.forEach((name, i) => {
        const place = fold(name).indexOf(wanted);
        if (place >= 0) found.push([fold(name) === wanted ? -1 : place, i]);
      });
    }
    found.sort((a, b) => a[0] - b[0]);
    const show = (i) => choose(data.levels[level].labels[i], i);
    byId("found").replaceChildren(
      ...found.slice(0, 20).map(([, i]) => {
        const button = element("button", names[i]);
        button.type = "button";
        button.addEventListener("click", () => show(i));
        return button;
      })
    );
    if (found.length && (found.length === 1 || found[0][0] === -1)) show(found[0][1]);
    else {
      choose(null);
      if (wanted !== "") byId("status").textContent = found.length ? `${found.length} nodes found` : "No node found";
    }
  });
  byId("clear").addEventListener("click", () => {
    byId("find").value = byId("search").value = "";
    byId("found").replaceChildren();
    for (const row of body.rows) row.hidden = false;
    if (view !== whole) {
      view = whole;
      drawPicture();
    }
    choose(null);
  });
  byId("zoom").addEventListener("click", () => {
    const labels = data.levels[level].labels, xs = [], ys = [];
    labels.forEach((label, i) => {
      if (label === chosen) {
        xs.push(data.places[2 * i]);
        ys.push(data.places[2 * i + 1]);
      }
    });
    if (!xs.length) return;
    const least = (values) => values.reduce((a, b) => Math.min(a, b));
    const most = (values) => values.reduce((a, b) => Math.max(a, b));
    const width = Math.max(most(xs) - least(xs), 1), height = Math.max(most(ys) - least(ys), 1);
    const scale = Math.min((0.8 * box.width) / width, (0.8 * box.height) / height, 40);
    view = {
      scale,
      x: (least(xs) + most(xs) - box.width / scale) / 2,
      y: (least(ys) + most(ys) - box.height / scale) / 2,
    };
    drawPicture();
    choose(chosen, node);
  });
  const select = byId("level");
  if (select) {
    for (const option of [...select.options]) if (!data.levels[option.value]) option.remove();
    select.addEventListener("change", () => {
      const found = node;
      level = Number(select.value);
      drawPicture();
      fillTable();
      byId("search").value = "";
      choose(found === null ? null : data.levels[level].labels[found], found);
    });
  }
  addEventListener("beforeprint", () => {
    for (const each of document.querySelectorAll("details")) each.open = true;
  });
  headRows();
  showSort();
  placeTags();
  writeNames();
  addEventListener("resize", writeNames);
  byId("controls").hidden = false;
})();
