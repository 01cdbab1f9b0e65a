// A recording as a spectrogram, the weights beneath it; played, with the weights moving along.

import { button, fill, make } from "../dom.js";
import { colorOf, inkOn, named, painted, rangeOf, sized, written } from "../draw.js";
import { session } from "../session.js";
import { set, view } from "../state.js";
import { colors, isDark, paper } from "../theme.js";
import { t } from "../words.js";
import { say } from "../share.js";
import { mapName, strongest } from "../scene.js";

const TALL = 150,
  STRIP = 26,
  TRACK = 22;

export class SoundView {
  constructor(host) {
    this.host = host;
    this.canvas = make("canvas", { tabindex: 0, role: "img" });
    this.play = button(`▶ ${t("Play")}`, () => (this.playing ? this.stop() : this.start()), { id: "play" });
    this.words = make("div", { class: "words", dir: "auto" });
    this.bar = make("div", { class: "row" });
    this.element = make("div", {}, this.bar, make("div", { class: "sheet" }, this.canvas), this.words);
    this.at = /** @type {number | null} */ (null);
    this.canvas.addEventListener("pointermove", (event) => event.pointerType === "mouse" && this.point(event, false));
    this.canvas.addEventListener("click", (event) => this.point(event, true));
    this.canvas.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      this.over(Math.max(0, Math.min(this.count() - 1, (this.key ?? 0) + step)), true);
    });
    this.key = /** @type {number | null} */ (null);
  }

  count() {
    return this.now.one.scene.weights.columns.length;
  }

  seconds() {
    const { scene } = this.now.one;
    return (scene.spectrogram.length / Math.max(1, scene.features)) * scene.step;
  }

  point(event, take) {
    const box = this.canvas.getBoundingClientRect(),
      { scene } = this.now.one;
    const time = ((event.clientX - box.left) / box.width) * this.seconds();
    this.over(Math.max(0, Math.min(this.count() - 1, Math.floor(time / scene.key_step))), take);
  }

  /** At a key; where the scene is of one moment, taking it asks about that moment. */
  over(key, take) {
    const { scene } = this.now.one;
    this.key = key;
    this.at = (key + 0.5) * scene.key_step;
    if (take && scene.moment !== null && view.input) set({ input: { ...view.input, moment: this.at } });
    else if (take) this.host.pin(this.row(), key);
    else this.host.point(this.row(), key);
    this.paint();
  }

  /** The row that attends most to where the cursor is; a scene of one moment has one. */
  row() {
    const { weights } = this.now.map,
      { rows, columns } = this.now.one.scene.weights;
    if (this.key === null || rows.length === 1) return Math.min(this.host.row(), rows.length - 1);
    let best = 0;
    for (let row = 1; row < rows.length; row++)
      if (weights[row * columns.length + this.key] > weights[best * columns.length + this.key]) best = row;
    return best;
  }

  /** @param {any} now */
  draw(now) {
    this.now = now;
    const { scene } = now.one;
    this.width = Math.min(now.width, 900);
    const sound = session.answer?.sound || (view.input?.kind === "bytes" && /\.(wav|flac|mp3|ogg|oga)$/i.test(view.input.name || ""));
    fill(
      this.bar,
      sound && this.play,
      make(
        "span",
        { class: "quiet small number" },
        scene.unit === "seconds" ? `${this.seconds().toFixed(2)} s` : `${this.count()} ${t(scene.unit)}`,
      ),
    );
    this.canvas.setAttribute(
      "aria-label",
      t("Spectrogram with the weights of {name}; arrow keys move in time; as numbers under “Table”", {
        name: mapName(now.map.name),
      }),
    );
    this.picture = null;
    this.paint();
  }

  paint() {
    const { scene } = this.now.one,
      { map } = this.now,
      ink = paper(),
      frames = scene.spectrogram.length / Math.max(1, scene.features);
    const { rows, columns } = scene.weights,
      tracks = scene.tracks.length;
    const height = TALL + STRIP + tracks * TRACK + 18;
    const context = sized(this.canvas, this.width, height);
    if (!this.picture) this.picture = this.spectrogram(scene, frames);
    context.imageSmoothingEnabled = true;
    context.drawImage(this.picture, 0, 0, this.width, TALL);
    const row = this.row(),
      weights = map.weights.subarray(row * columns.length, (row + 1) * columns.length);
    if (weights.length) {
      context.imageSmoothingEnabled = false;
      const reach = (columns.length * scene.key_step) / this.seconds();
      context.drawImage(
        painted(weights, rangeOf(weights), 1, columns.length, colors()),
        0,
        TALL + 3,
        this.width * reach,
        STRIP - 6,
      );
    }
    context.font = '12px system-ui, "Noto Sans CJK SC", sans-serif';
    context.textBaseline = "middle";
    scene.tracks.forEach((track, i) => this.track(context, track, TALL + STRIP + i * TRACK, ink, scene));
    context.fillStyle = ink.faint;
    context.textAlign = "left";
    context.fillText("0", 0, height - 7);
    context.textAlign = "right";
    context.fillText(
      scene.unit === "seconds" ? `${this.seconds().toFixed(1)} s` : String(columns.length),
      this.width,
      height - 7,
    );
    const moment = this.playing ? this.at : (scene.moment ?? this.at);
    if (moment !== null) {
      context.fillStyle = ink.mark;
      context.fillRect((moment / this.seconds()) * this.width - 1, 0, 2, TALL + STRIP + tracks * TRACK);
    }
    this.spoken(rows, columns, row);
  }

  /** What is written, each on the color of its weight at the cursor's time. */
  spoken(rows, columns, row) {
    if (rows.length <= 1) return fill(this.words);
    const { weights } = this.now.map,
      ramp = colors(),
      key = this.key;
    return fill(
      this.words,
      rows.map((name, i) => {
        const weight = key === null ? 0 : weights[i * columns.length + key],
          color = colorOf(weight, this.now.range, ramp);
        const chip = make("span", { class: "tagged" }, name);
        chip.style.background = `rgb(${color})`;
        chip.style.color = inkOn(color);
        if (i === row && key !== null) chip.style.outline = `2px solid ${paper().mark}`;
        return chip;
      }),
    );
  }

  spectrogram(scene, frames) {
    const { features, spectrogram } = scene;
    // The lowest pitch is below; the loudest of what is heard is the brightest.
    const turned = new Float32Array(spectrogram.length),
      sorted = Float32Array.from(spectrogram).sort();
    for (let frame = 0; frame < frames; frame++)
      for (let f = 0; f < features; f++)
        turned[(features - 1 - f) * frames + frame] = spectrogram[frame * features + f];
    const range = /** @type {[number, number]} */ ([
      sorted[Math.floor(sorted.length * 0.02)] || 0,
      sorted[Math.floor(sorted.length * 0.995)] || 1,
    ]);
    const grays = Array.from({ length: 256 }, (_, i) =>
      (isDark() ? [18 + i * 0.85, 22 + i * 0.85, 28 + i * 0.85] : [252 - i * 0.85, 252 - i * 0.85, 252 - i * 0.8]).map(
        Math.round,
      ),
    );
    return painted(turned, range, features, frames, /** @type {any} */ (grays));
  }

  track(context, track, top, ink, scene) {
    const names = [...new Set(scene.tracks.flatMap((one) => one.segments.map(({ label }) => label)))].sort();
    context.textAlign = "left";
    for (const { start, end, label } of track.segments) {
      const [x, to] = [(start / this.seconds()) * this.width, (end / this.seconds()) * this.width];
      context.fillStyle = named(names.indexOf(label), isDark());
      context.fillRect(x, top + 1, Math.max(1, to - x - 1), TRACK - 3);
      context.fillStyle = isDark() ? "#000" : "#fff";
      context.save();
      context.beginPath();
      context.rect(x, top, Math.max(1, to - x - 1), TRACK);
      context.clip();
      // Half a name says less than none.
      if (context.measureText(label).width + 6 < to - x) context.fillText(label, x + 4, top + TRACK / 2);
      context.restore();
    }
    context.fillStyle = ink.faint;
  }

  async start() {
    try {
      const bytes = session.answer?.sound
        ? await (await fetch(session.answer.sound)).arrayBuffer()
        : Uint8Array.from(atob(view.input?.base64 || ""), (c) => c.charCodeAt(0)).buffer;
      const audio = new AudioContext();
      const source = audio.createBufferSource();
      source.buffer = await audio.decodeAudioData(/** @type {ArrayBuffer} */ (bytes));
      source.connect(audio.destination);
      source.onended = () => this.stop();
      source.start();
      this.playing = { audio, began: audio.currentTime };
      this.play.textContent = `■ ${t("Stop")}`;
      this.step();
    } catch {
      say(t("The recording cannot be played here."));
    }
  }

  /** While it plays, the weights move along; a scene of one moment is asked again as fast as it answers. */
  step() {
    if (!this.playing || !this.canvas.isConnected) return this.stop();
    const { scene } = this.now.one;
    this.at = Math.min(this.seconds(), this.playing.audio.currentTime - this.playing.began);
    this.key = Math.max(0, Math.min(this.count() - 1, Math.floor(this.at / scene.key_step)));
    if (scene.moment !== null && view.input && !session.waiting)
      set({ input: { ...view.input, moment: Math.round(this.at * 100) / 100 } });
    this.paint();
    this.host.point(this.row(), this.key);
    requestAnimationFrame(() => this.step());
    return undefined;
  }

  stop() {
    this.playing?.audio.close();
    this.playing = null;
    this.play.textContent = `▶ ${t("Play")}`;
  }

  tell(row, column) {
    const { rows, columns } = this.now.one.scene.weights,
      { weights } = this.now.map;
    if (row >= rows.length || column >= columns.length) return null;
    const start = row * columns.length,
      best = strongest(weights, start, columns.length, 4);
    return {
      from: rows[row],
      to: columns[column],
      weight: weights[start + column],
      others: `${t("strongest")}: ${best.map((i) => `${columns[i]} ${written(weights[start + i])}`).join(" · ")}`,
    };
  }

  hint() {
    return this.now?.one.scene.moment !== null
      ? t("Click a moment to see what it attends to.")
      : t("Point at a moment; the strip shows the weights of what is written there.");
  }
}
