// What anybody may expect of any page. Returns a list of sentences, one for each thing that is wrong.
const problems = [];
const { max, min, abs } = Math;

const name = element => {
  const id = element.id ? '#' + element.id : '';
  const classes = [...element.classList].map(one => '.' + one).join('');
  return element.localName + id + classes;
};
const isSeen = element =>
  element.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true });

// ---------- structure ----------
for (const one of ['h1', 'main']) {
  const count = document.querySelectorAll(one).length;
  if (count !== 1) problems.push(`${count} elements ${one} instead of one`);
}
if (!document.documentElement.lang) problems.push('the page does not name its language');
if (!document.title.trim()) problems.push('the page has no title');

let level = 0;
for (const heading of document.querySelectorAll('h1, h2, h3, h4, h5, h6')) {
  const next = Number(heading.localName[1]);
  if (next > level + 1) problems.push(`a heading h${next} follows h${level}: ${heading.textContent.trim()}`);
  level = next;
}

const ids = new Set();
for (const { id } of document.querySelectorAll('[id]')) {
  if (ids.has(id)) problems.push(`two elements have the id ${id}`);
  ids.add(id);
}
for (const attribute of ['for', 'aria-labelledby', 'aria-describedby', 'aria-controls', 'popovertarget']) {
  for (const element of document.querySelectorAll(`[${attribute}]`)) {
    for (const id of element.getAttribute(attribute).split(/\s+/)) {
      if (!ids.has(id)) problems.push(`${attribute} of ${name(element)} names ${id}, which is not there`);
    }
  }
}
for (const element of document.querySelectorAll('[href^="#"]')) {
  const id = element.getAttribute('href').slice(1);
  if (!ids.has(id)) problems.push(`${name(element)} leads to ${id}, which is not there`);
}
for (const element of document.querySelectorAll('[style]')) {
  problems.push(`${name(element)} has a style of its own`);
}
for (const element of document.querySelectorAll('[hidden]')) {
  if (isSeen(element)) problems.push(`${name(element)} is hidden and is seen all the same`);
}
for (const element of document.querySelectorAll('[tabindex]')) {
  if (element.tabIndex > 0) problems.push(`${name(element)} jumps the queue of the tab key`);
}

// ---------- width ----------
const { scrollWidth, clientWidth } = document.documentElement;
if (scrollWidth > clientWidth) {
  const wide = [...document.body.querySelectorAll('*')]
    .filter(one => isSeen(one) && one.getBoundingClientRect().right > clientWidth + 1);
  problems.push(`${scrollWidth}px of content in ${clientWidth}px: ${wide.slice(0, 5).map(name).join(', ')}`);
}

// ---------- contrast ----------
const pixel = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
const known = new Map();
// Whatever way a color is written, the canvas says what it is: red, green, blue up to 255, alpha up to 1.
const rgba = color => {
  if (!known.has(color)) {
    pixel.clearRect(0, 0, 1, 1);
    pixel.fillStyle = color;
    pixel.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pixel.getImageData(0, 0, 1, 1).data;
    known.set(color, [r, g, b, a / 255]);
  }
  return known.get(color);
};
const over = ([r, g, b, a], [br, bg, bb]) =>
  [r * a + br * (1 - a), g * a + bg * (1 - a), b * a + bb * (1 - a), 1];
const luminance = ([r, g, b]) => {
  const [x, y, z] = [r, g, b].map(one => {
    const part = one / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
};
const contrast = (one, two) => {
  const [a, b] = [luminance(one), luminance(two)];
  return (max(a, b) + 0.05) / (min(a, b) + 0.05);
};
const schemes = getComputedStyle(document.documentElement).colorScheme;
const wantsDark = matchMedia('(prefers-color-scheme: dark)').matches;
const isDark = schemes.includes('dark') && (wantsDark || !schemes.includes('light'));
const canvas = rgba(isDark ? '#121212' : '#fff');
const grounds = new Map();
// What is behind the content of an element.
const ground = element => {
  if (!element) return canvas;
  if (!grounds.has(element)) {
    grounds.set(element, over(rgba(getComputedStyle(element).backgroundColor), ground(element.parentElement)));
  }
  return grounds.get(element);
};
const opacity = element =>
  element ? Number(getComputedStyle(element).opacity) * opacity(element.parentElement) : 1;

const examine = (element, color, text) => {
  const style = getComputedStyle(element);
  const behind = ground(element);
  const [r, g, b, a] = rgba(color);
  const figure = contrast(over([r, g, b, a * opacity(element)], behind), behind);
  const size = parseFloat(style.fontSize);
  const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  if (figure < (isLarge ? 3 : 4.5)) {
    problems.push(`contrast ${figure.toFixed(2)} of "${text.trim().slice(0, 40)}" in ${name(element)}`);
  }
};
const isHidden = rects => [...rects].every(({ width, height }) => width <= 1 || height <= 1);

const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const text = texts.currentNode;
  const element = text.parentElement;
  if (!text.data.trim() || element.closest('script, style, noscript, title, option, :disabled')) continue;
  // A text for screen readers is clipped to nothing.
  if (!isSeen(element) || element.closest('.sr')) continue;
  const range = document.createRange();
  range.selectNodeContents(text);
  if (isHidden(range.getClientRects())) continue;
  const style = getComputedStyle(element);
  examine(element, element instanceof SVGElement ? style.fill : style.color, text.data);
}
for (const field of document.querySelectorAll('input, select, textarea')) {
  if (!isSeen(field) || field.disabled || isHidden(field.getClientRects())) continue;
  examine(field, getComputedStyle(field).color, field.value || 'a field');
  if (field.placeholder) examine(field, getComputedStyle(field, '::placeholder').color, field.placeholder);
}
return problems;
