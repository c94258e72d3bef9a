// The view "Timeline" under mouse and keys.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settle, stateOf, syntheticPage, withPage } from './browser.mjs';

const small = syntheticPage('small');
const view = (page) => page.evaluate(() => ({ ...window.gmdPage.views[1].chart.view }));
const shown = (page, selector) => page.locator(`${selector}:visible`).innerText();

async function pointOf(page, x, y) {
    const box = await page.locator('.timeline .overlay').boundingBox();
    return [box.x + box.width * x, box.y + box.height * y];
}

// Both ways of drawing: the plain canvas, and WebGL2 computed by whatever there is.
for (const renderer of ['canvas', 'webgl']) {
    test(`draws blocks and what is reserved (${renderer})`, async () => {
        await withPage(small, `#view=timeline&renderer=${renderer}`, async (page) => {
            const painter = await page.evaluate(() => window.gmdPage.views[1].chart.painter.name);
            assert.equal(painter, renderer === 'canvas' ? 'canvas' : 'WebGL2');
            const colours = await page.evaluate(() => {
                const { chart } = window.gmdPage.views[1];
                chart.draw(); // WebGL's picture can be read in the frame that drew it only
                const copy = document.createElement('canvas');
                copy.width = chart.canvas.width;
                copy.height = chart.canvas.height;
                const context = copy.getContext('2d');
                context.drawImage(chart.canvas, 0, 0);
                const pixels = new Uint32Array(
                    context.getImageData(0, 0, copy.width, copy.height).data.buffer,
                );
                const seen = new Map();
                for (const pixel of pixels) seen.set(pixel, (seen.get(pixel) ?? 0) + 1);
                return [...seen.values()].filter((count) => count > 200).length;
            });
            assert.ok(colours >= 4, `only ${colours} colours`); // ground, reserved and two categories at least
        });
    });
}

test('the pointer over a band names its block', async () => {
    await withPage(small, '#view=timeline', async (page) => {
        await page.mouse.move(...(await pointOf(page, 0.5, 0.88)));
        const tip = await shown(page, '.timeline .tip');
        assert.match(tip, /Block \d+: [\d.]+ MiB/);
        assert.match(tip, /default · large · parameter/);
    });
});

test('the pointer over a band outlines its block over all of its life', async () => {
    await withPage(small, '#view=timeline', async (page) => {
        await page.mouse.move(...(await pointOf(page, 0.5, 0.88)));
        await settle(page);
        const [outline, life] = await page.evaluate(() => {
            const { chart } = window.gmdPage.views[1];
            const { history, plot } = chart;
            const block = chart.hover.block;
            let points;
            const painter = new Proxy(
                {},
                { get: (_, name) => (name === 'outline' ? (p) => (points = p) : () => {}) },
            );
            chart.paintOverlay(painter, { ...chart.themed }, false);
            const ends = [history.blockAlloc[block], Math.min(history.blockEnd[block], history.last + 1)];
            const xs = points.map(([x]) => x);
            return [
                [Math.min(...xs), Math.max(...xs)],
                ends.map((event) => Math.max(chart.x(event), plot.x)),
            ];
        });
        for (const i of [0, 1]) assert.ok(Math.abs(outline[i] - life[i]) <= 2, `${outline} and ${life}`);
    });
});

test('the outline of a block is where the block is drawn, at every column', async () => {
    await withPage(small, '#view=timeline', async (page) => {
        const wrong = await page.evaluate(() => {
            const { chart } = window.gmdPage.views[1];
            const { history, overview } = chart;
            const bad = [];
            for (const block of [0, 30, 100, 250]) {
                let outline;
                const note = (p) => (outline = p);
                const painter = new Proxy({}, { get: (_, name) => (name === 'outline' ? note : () => {}) });
                chart.hover = { block };
                chart.paintOverlay(painter, { ...chart.themed }, false);
                for (const c of overview.moments.keys()) {
                    const live = history.liveBlocks(overview.moments[c]);
                    if (!live.includes(block)) continue;
                    const below = live.filter((other) => other < block);
                    const y = chart.y(below.reduce((sum, other) => sum + history.blockSize[other], 0));
                    const x = chart.x(
                        overview.from + ((c + 0.5) * (overview.to - overview.from)) / overview.columns,
                    );
                    const lower = outline.slice(outline.length / 2);
                    const at = lower.findIndex(
                        ([right], i) => i % 2 === 0 && right >= x && lower[i + 1][0] <= x,
                    );
                    if (at < 0 || Math.abs(lower[at][1] - y) > 0.5) bad.push([block, c]);
                }
            }
            return bad;
        });
        assert.deepEqual(wrong, []);
    });
});

test('a click shows the block with its size, life, stream, pool, category and stack', async () => {
    await withPage(small, '#view=timeline', async (page) => {
        await page.mouse.click(...(await pointOf(page, 0.5, 0.88)));
        await settle(page);
        const details = await shown(page, '.details');
        for (const expected of [
            'Size',
            'Address',
            'never freed',
            'default',
            'large',
            'parameter',
            'main train.py:12',
        ])
            assert.ok(details.replace(/\s+/g, ' ').includes(expected), `${expected} is not in ${details}`);
    });
});

test('the wheel zooms at the pointer, a drag pans, and 0 shows all again', async () => {
    await withPage(small, '#view=timeline', async (page) => {
        const whole = await view(page);
        await page.mouse.move(...(await pointOf(page, 0.5, 0.5)));
        await page.mouse.wheel(0, -600);
        await settle(page);
        const zoomed = await view(page);
        assert.ok(zoomed.to - zoomed.from < (whole.to - whole.from) * 0.6);
        await page.mouse.down();
        await page.mouse.move(...(await pointOf(page, 0.3, 0.5)), { steps: 5 });
        await page.mouse.up();
        await settle(page);
        const panned = await view(page);
        assert.ok(panned.from > zoomed.from);
        assert.ok(Math.abs(panned.to - panned.from - (zoomed.to - zoomed.from)) < 1e-6);
        await page.locator('.timeline .overlay').press('0');
        await settle(page);
        assert.deepEqual(await view(page), whole);
    });
});

test('Shift and a drag selects a span and sums what was allocated, freed and kept in it', async () => {
    await withPage(small, '#view=timeline', async (page) => {
        await page.keyboard.down('Shift');
        await page.mouse.move(...(await pointOf(page, 0.3, 0.5)));
        await page.mouse.down();
        await page.mouse.move(...(await pointOf(page, 0.6, 0.5)), { steps: 4 });
        await page.mouse.up();
        await page.keyboard.up('Shift');
        await settle(page);
        const { span } = await stateOf(page);
        assert.ok(span[1] > span[0]);
        const table = await shown(page, '.timeline .moment table');
        assert.match(table, /Kept\s+Allocated\s+Freed/);
        assert.match(table, /train\.py:41/);
    });
});

test('what a span kept is what its sums say', async () => {
    await withPage(small, '#view=timeline&span=300-600', async (page) => {
        const [kept, expected] = await page.evaluate(() => {
            const history = window.gmdPage.app.history();
            const [from, to] = [300, 600].map((number) => history.eventOf(number));
            let sum = 0;
            for (let i = 0; i < history.blocks; i++)
                if (history.blockAlloc[i] >= from && history.blockAlloc[i] <= to && history.blockEnd[i] > to)
                    sum += history.blockSize[i];
            const rows = [...document.querySelectorAll('.timeline .moment tbody tr')].map(
                (row) => row.cells[1].textContent,
            );
            return [rows, sum];
        });
        const units = { B: 1, KiB: 1024, MiB: 2 ** 20 };
        const shownSum = kept
            .map((text) => Number(text.split(' ')[0]) * units[text.split(' ')[1]])
            .reduce((a, b) => a + b, 0);
        assert.ok(Math.abs(shownSum - expected) < expected * 0.01 + 4096, `${shownSum} and ${expected}`);
    });
});

test('keys move the event and the block', async () => {
    await withPage(small, '#view=timeline&event=700', async (page) => {
        const chart = page.locator('.timeline .overlay');
        await chart.press('ArrowRight');
        await settle(page);
        assert.equal((await stateOf(page)).event, 702); // the first has the number 0
        await chart.press('Shift+ArrowLeft');
        await settle(page);
        assert.equal((await stateOf(page)).event, 692);
        await chart.press('ArrowUp');
        await settle(page);
        const { block } = await stateOf(page);
        assert.equal(block, 0); // the lowest
        await chart.press('Escape');
        await settle(page);
        assert.equal((await stateOf(page)).block, null);
    });
});

for (const fragment of ['', '&query=train.py', '&range=300-400', '&range=300-420&query=model.py'])
    test(`the upper edge is what is allocated, at every column${fragment}`, async () => {
        await withPage(small, `#view=timeline${fragment}`, async (page) => {
            const wrong = await page.evaluate(() => {
                const { chart } = window.gmdPage.views[1];
                const { history } = chart;
                const raster = chart.isFull() ? chart.overview : chart.raster;
                const bad = [];
                for (let c = 0; c < raster.columns; c++) {
                    let row = 0;
                    while (row < raster.rows && (raster.pixels[c * raster.rows + row] & 63) >= 2) row++;
                    const height = (history.allocated[raster.moments[c]] / raster.top) * raster.rows;
                    if (Math.abs(row - height) > 1) bad.push([c, row, height]);
                }
                return bad;
            });
            assert.deepEqual(wrong, []);
        });
    });

for (const [query, least, most] of [
    ['train.py:41', 5, 20],
    ['>= 5.9 MiB', 5, 100],
    ['attention', 100, 600],
    ['0x7f0000000000', 1, 20],
    ['no such frame', 0, 0],
]) {
    test(`the search for "${query}" finds blocks`, async () => {
        await withPage(small, '#view=timeline', async (page) => {
            await page.keyboard.press('/');
            await page.keyboard.type(query);
            await page.keyboard.press('Enter');
            await settle(page);
            const count = await page.evaluate(() => window.gmdPage.app.highlight.count);
            assert.ok(count >= least && count <= most, `${count} blocks`);
            assert.match(await page.locator('.search .soft').innerText(), new RegExp(`^${count} block`));
            if (!count) return;
            await page.locator('.search [aria-label="Next match"]').click();
            await settle(page);
            assert.notEqual((await stateOf(page)).block, null);
        });
    });
}

for (const range of ['0-2500', '1000-1012', '2000-2100'])
    test(`no two times of the axis read the same: events ${range}`, async () => {
        await withPage(small, `#view=timeline&range=${range}`, async (page) => {
            const times = await page.evaluate(() => {
                const { chart } = window.gmdPage.views[1];
                const texts = [];
                const methods = { text: (content) => texts.push(content), widthOf: () => 0 };
                const painter = new Proxy({}, { get: (_, name) => methods[name] ?? (() => {}) });
                chart.paintOverlay(painter, { ...chart.themed }, false);
                return texts.filter((text) => /^[\d.]+ (µs|ms|s)$/.test(text));
            });
            assert.ok(times.length > 4, `${times}`);
            assert.deepEqual([...new Set(times)], times);
        });
    });

for (const colouring of ['category', 'line', 'stream', 'pool', 'age']) {
    test(`colours by ${colouring} have a legend`, async () => {
        await withPage(small, '#view=timeline', async (page) => {
            await page.locator('.timeline select').selectOption(colouring);
            await page.locator('.timeline input[type=checkbox]').check();
            await settle(page);
            assert.ok((await page.locator('.legend .entry').count()) >= 3);
        });
    });
}
