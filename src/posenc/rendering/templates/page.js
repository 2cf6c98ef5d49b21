"use strict";
(function () {
  const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
  const whole = (value) => grouped.format(value);
  const level = (value) => value.toFixed(3).replace(/^-0\.000$/, "0.000").replace("-", "−");
  function real(value) {
    if (value === 0) return "0";
    if (Math.abs(value) < 1e-4) return value.toExponential(0).replace(/e([+-])(\d)$/, "e$10$2");
    return Math.abs(value) >= 1000 ? whole(value) : String(parseFloat(value.toPrecision(4)));
  }
  const part = (root, name) => root.querySelector(`[data-part="${name}"]`);
  const named = (element, name, value) => element.setAttribute(name, value);

  function dial(group, d) {
    const step = Number(group.dataset.step), radius = Number(group.dataset.radius), half = Number(group.dataset.half);
    const turn = (d * step) % (2 * Math.PI), cosine = Math.cos(turn), tip = 0.62 * radius;
    named(part(group, "hand"), "transform", `rotate(${((turn * 180) / Math.PI).toFixed(3)})`);
    const x = tip * Math.sin(turn), y = -tip * Math.cos(turn);
    named(
      part(group, "arc"), "d",
      `M0 0V${-tip}A${tip} ${tip} 0 ${Number(Math.abs(turn) > Math.PI)} ${Number(turn >= 0)} ${x.toFixed(1)} ${y.toFixed(1)}Z`
    );
    const label = part(group, "n");
    named(label, "x", (Math.sin(turn) * radius * 1.13).toFixed(1));
    named(label, "y", (4 - Math.cos(turn) * radius * 1.13).toFixed(1));
    label.textContent = Math.abs(Math.sin(turn)) < 0.2 && Math.cos(turn) > 0.2 ? "" : "n";
    part(group, "turns").textContent = `${real((d * Math.abs(step)) / (2 * Math.PI))} turns`;
    const bar = part(group, "bar");
    named(bar, "x", Math.min(0, half * cosine).toFixed(1));
    named(bar, "width", Math.abs(half * cosine).toFixed(1));
    part(group, "cos").textContent = `cos = ${level(cosine)}`;
  }

  function bars(root, theta, every, d, kappa) {
    const group = root.querySelector("[data-bars]");
    const left = Number(group.dataset.left), step = Number(group.dataset.step);
    const middle = Number(group.dataset.middle), tall = Number(group.dataset.tall);
    for (const path of group.querySelectorAll('[data-part="bars"]')) {
      if (!path.dataset.pairs) continue;
      const pairs = path.dataset.pairs.split(" "), places = path.dataset.places.split(" ");
      named(path, "d", pairs.map((pair, k) => {
        const height = -tall * Math.cos(d * theta[Math.floor(pair / every)]);
        return `M${(left + (Number(places[k]) + 0.5) * step).toFixed(1)} ${middle}v${height.toFixed(1)}`;
      }).join(""));
    }
    const line = part(group, "level"), y = (middle - tall * kappa).toFixed(1);
    named(line, "y1", y);
    named(line, "y2", y);
    part(group, "mean").textContent = `cos(Dθ) of every pair; mean κ = ${level(kappa)}`;
  }

  function cursor(plot, d, kappa) {
    const data = plot.dataset, log = data.log === "1", left = Number(data.left), right = Number(data.right);
    let mark = plot.querySelector(".cursor-group");
    if (!mark) {
      mark = document.createElementNS("http://www.w3.org/2000/svg", "g");
      mark.setAttribute("class", "cursor-group");
      mark.innerHTML = '<line class="cursor"></line><circle class="fill-ink" r="3.5"></circle>';
      plot.append(mark);
    }
    const at = log ? Math.log10(Math.max(d, 1)) / Math.log10(data.reach) : d / data.reach;
    const x = left + (right - left) * Math.min(at, 1);
    const top = Number(data.top), bottom = Number(data.bottom);
    const y = top + ((bottom - top) * (data.high - kappa)) / (data.high - data.low);
    const line = mark.firstChild, dot = mark.lastChild;
    named(line, "x1", x); named(line, "x2", x); named(line, "y1", top); named(line, "y2", bottom);
    named(dot, "cx", x); named(dot, "cy", y);
  }

  function finding(group, d, kappa, pairs) {
    const told = [...group.querySelectorAll("[data-dial]")].map((each) => {
      const number = part(each, "turns").textContent.replace(" turns", "");
      const pair = each.querySelector("text.strong:not([data-part])").textContent.replace(":", "");
      return `the ${pair} has turned ${number} times`;
    });
    const last = told.pop();
    const list = told.length ? `${told.join(", ")} and ${last}` : last;
    return `At a distance of ${whole(d)} position${d === 1 ? "" : "s"} ${list}; the mean of all ${pairs} cosines, ` +
      `the similarity, is ${level(kappa)}.`;
  }

  function start(root) {
    const control = root.querySelector("[data-control]"), clocks = [...root.querySelectorAll("[data-clocks]")];
    if (!control || !clocks.length || control.dataset.started) return;
    control.dataset.started = "1";
    const slider = control.querySelector("[data-slider]"), number = control.querySelector("[data-number]");
    const reach = Number(slider.dataset.reach), theta = clocks[0].dataset.theta.split(" ").map(Number);
    const pairs = Number(clocks[0].dataset.pairs), every = Math.ceil(pairs / theta.length);
    const plots = [...root.querySelectorAll("[data-similarity]")];
    // the slider runs over ln(D + 1), so that small distances have room
    const place = (d) => Math.round((1000 * Math.log1p(d)) / Math.log1p(reach));
    const value = (at) => Math.round(Math.expm1((at / 1000) * Math.log1p(reach)));
    function show(d) {
      const kappa = theta.reduce((sum, t) => sum + Math.cos(d * t), 0) / theta.length;
      for (const group of clocks) {
        group.querySelectorAll("[data-dial]").forEach((each) => dial(each, d));
        bars(group, theta, every, d, kappa);
        const svg = group.closest("svg");
        svg.querySelector("title").textContent = `Clocks at a distance of ${whole(d)} positions`;
        svg.querySelector("desc").textContent = finding(group, d, kappa, pairs);
      }
      root.querySelector("[data-finding]").textContent = finding(clocks[0], d, kappa, pairs);
      for (const plot of plots) cursor(plot, d, kappa);
      slider.setAttribute("aria-valuetext", `${whole(d)} positions`);
    }
    slider.addEventListener("input", () => { const d = value(Number(slider.value)); number.value = d; show(d); });
    number.addEventListener("input", () => {
      const d = Math.min(Math.max(Math.round(Number(number.value) || 0), 0), reach);
      slider.value = place(d);
      show(d);
    });
    for (const plot of plots) {
      const svg = plot.closest("svg");
      svg.style.cursor = "crosshair";
      svg.addEventListener("click", (event) => {
        const box = svg.getBoundingClientRect(), data = plot.dataset;
        const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
        const at = Math.min(Math.max((x - data.left) / (data.right - data.left), 0), 1);
        const d = Math.round(data.log === "1" ? Math.pow(Number(data.reach), at) : at * data.reach);
        number.value = d;
        slider.value = place(d);
        show(d);
      });
    }
    const first = Number(clocks[0].dataset.distance);
    number.value = first;
    slider.value = place(first);
    for (const plot of plots) cursor(plot, first, theta.reduce((sum, t) => sum + Math.cos(first * t), 0) / theta.length);
    control.hidden = false;
  }

  document.querySelectorAll("[data-encoding]").forEach(start);
})();
