// Writes a picture again with at most 256 colors, since the documents carry it for ever. Takes and returns a PNG
// in base64.
const COLORS_MAX = 256;
return (async encoded => {
  const bytes = Uint8Array.from(atob(encoded), one => one.charCodeAt(0));
  const bitmap = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
  const { width, height } = bitmap;
  const canvas = new OffscreenCanvas(width, height).getContext('2d');
  canvas.drawImage(bitmap, 0, 0);
  const { data } = canvas.getImageData(0, 0, width, height);

  const counts = new Map();
  for (let at = 0; at < data.length; at += 4) {
    const color = data[at] << 16 | data[at + 1] << 8 | data[at + 2];
    counts.set(color, (counts.get(color) ?? 0) + 1);
  }
  const parts = color => [color >> 16, color >> 8 & 255, color & 255];
  const distance = (one, other) => {
    const [a, b] = [parts(one), parts(other)];
    return (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2;
  };
  // The most used first; one that is as good as one of those is not taken. How good is found by trying.
  const ranked = [...counts].sort((one, other) => other[1] - one[1]).map(([color]) => color);
  let palette = ranked;
  for (let near = 8; palette.length > COLORS_MAX; near *= 1.5) {
    palette = [];
    for (const color of ranked) {
      if (!palette.some(taken => distance(taken, color) < near)) palette.push(color);
      if (palette.length > COLORS_MAX) break;
    }
  }
  const index = new Map();
  for (const color of ranked) {
    let best = 0;
    for (let at = 1; at < palette.length; at += 1) {
      if (distance(palette[at], color) < distance(palette[best], color)) best = at;
    }
    index.set(color, best);
  }

  // Each row of the format begins with the name of its filter, which is none.
  const rows = new Uint8Array((width + 1) * height);
  for (let at = 0, to = 0; at < data.length; at += 4) {
    if ((at / 4) % width === 0) to += 1;
    rows[to] = index.get(data[at] << 16 | data[at + 1] << 8 | data[at + 2]);
    to += 1;
  }
  const packed = new Response(new Blob([rows]).stream().pipeThrough(new CompressionStream('deflate')));

  const crc = bytes => {
    let sum = ~0;
    for (const byte of bytes) {
      sum ^= byte;
      for (let bit = 0; bit < 8; bit += 1) sum = sum >>> 1 ^ (sum & 1 ? 0xedb88320 : 0);
    }
    return ~sum;
  };
  const number = value => [value >>> 24, value >>> 16 & 255, value >>> 8 & 255, value & 255];
  const chunk = (name, content) => {
    const named = [...name].map(one => one.charCodeAt(0)).concat([...content]);
    return [...number(content.length), ...named, ...number(crc(named))];
  };
  const png = Uint8Array.from([
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a,
    ...chunk('IHDR', [...number(width), ...number(height), 8, 3, 0, 0, 0]),
    ...chunk('PLTE', palette.flatMap(parts)),
    ...chunk('IDAT', new Uint8Array(await packed.arrayBuffer())),
    ...chunk('IEND', []),
  ]);
  let text = '';
  for (const byte of png) text += String.fromCharCode(byte);
  return btoa(text);
})(arguments[0]);
