// The page without colour: each colour has a pattern, on the screen where the reader wants it, in pictures always.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { settle, stateOf, syntheticPage, withPage } from './browser.mjs';

const small = syntheticPage('small');
const box = (page, view) => page.locator(`.${view} input[type=checkbox]`);

// How many colours the charts of a view have that are more than stray pixels. WebGL's picture can be read in the frame
// that drew it only.
function coloursOfCharts(page, view) {
    return page.evaluate((index) => {
        const view = window.gmdPage.views[index];
        const charts = view.chart ? [view.chart] : [view.upper.chart, view.lower.chart];
        return charts.map((chart) => {
            chart.draw();
            const { width, height } = chart.canvas;
            const context = new OffscreenCanvas(width, height).getContext('2d');
            context.drawImage(chart.canvas, 0, 0);
            const seen = new Map();
            for (const pixel of new Uint32Array(context.getImageData(0, 0, width, height).data.buffer))
                seen.set(pixel, (seen.get(pixel) ?? 0) + 1);
            return [...seen.values()].filter((count) => count > 100).length;
        });
    }, view);
}

for (const renderer of ['canvas', 'webgl'])
    for (const [view, index] of [
        ['timeline', 1],
        ['compare', 4],
    ])
        test(`the choice of patterns in ${view} gives the blocks ink (${renderer})`, async () => {
            await withPage(small, `#view=${view}&renderer=${renderer}`, async (page) => {
                const plain = await coloursOfCharts(page, index);
                await box(page, view).check();
                await settle(page);
                assert.equal((await stateOf(page)).patterns, true);
                const inked = await coloursOfCharts(page, index);
                for (const i of plain.keys()) assert.ok(inked[i] > plain[i], `${inked} after ${plain}`);
            });
        });

// The colours of a strip below the name of a block in the view "State"; the block's pattern has ink in each row.
function coloursOfStrip(page, [x, y, width]) {
    return page.evaluate(
        ([left, top, length]) => {
            const { canvas } = window.gmdPage.views[2];
            const scale = canvas.width / canvas.clientWidth;
            const strip = [left, top, length, 3].map((value) => Math.round(value * scale));
            const { buffer } = canvas.getContext('2d').getImageData(...strip).data;
            return new Set(new Uint32Array(buffer)).size;
        },
        [x, y, width],
    );
}

test('the blocks of the state have patterns where the reader wants them', async () => {
    await withPage(small, '#view=state&event=700&patterns=1', async (page) => {
        const strip = await page.evaluate(() => {
            const rectangles = [];
            const rect = (x, y, width, height, fill) => rectangles.push({ x, y, width, height, fill });
            const painter = new Proxy({}, { get: (_, name) => (name === 'rect' ? rect : () => {}) });
            window.gmdPage.views[2].paint(painter, true);
            const isInkedInEachRow = ({ width, fill }) => width > 30 && [1, 2].includes(fill.kind);
            const blocks = rectangles.filter(({ height, fill }) => height > 20 && fill.ink);
            const reserved = blocks[0].fill; // segments are painted before their blocks
            const found = blocks.find((one) => isInkedInEachRow(one) && one.fill.ink !== reserved.ink);
            return [found.x + 2, found.y + found.height - 5, found.width - 4];
        });
        assert.equal(await coloursOfStrip(page, strip), 2);
        await box(page, 'state').uncheck();
        await settle(page);
        assert.equal(await coloursOfStrip(page, strip), 1);
    });
});

async function savedSvg(page) {
    const waiting = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Save SVG' }).click();
    return readFileSync(await (await waiting).path(), 'utf8');
}

for (const view of ['timeline', 'state', 'compare'])
    test(`a saved picture of ${view} has patterns, also where the screen has none`, async () => {
        await withPage(small, `#view=${view}&event=700`, async (page) => {
            assert.equal(await box(page, view).isChecked(), false);
            const svg = await savedSvg(page);
            const defined = [...svg.matchAll(/<pattern id="([^"]+)"/g)].map(([, id]) => id);
            const used = [...svg.matchAll(/fill="url\(#([^)]+)\)"/g)].map(([, id]) => id);
            assert.ok(defined.length >= 3, `${defined}`); // what is reserved, and two categories
            assert.deepEqual([...new Set(used)].sort(), [...defined].sort());
            assert.ok(used.length > defined.length, 'the legend has the patterns of the picture');
        });
    });

test('no two colours of a legend have one pattern', async () => {
    await withPage(small, '#view=timeline&colour=age&patterns=1', async (page) => {
        const patterns = await page.evaluate(() =>
            [...document.querySelectorAll('.timeline .legend .entry')]
                .filter((entry) => !entry.textContent.startsWith('reserved'))
                .map((entry) => {
                    const canvas = entry.querySelector('canvas');
                    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
                    const shades = new Uint32Array(data.buffer);
                    return shades.reduce((text, shade) => text + (shade === shades[9] ? '0' : '1'), '');
                }),
        );
        assert.ok(patterns.length >= 4, `${patterns.length} entries`);
        assert.equal(new Set(patterns).size, patterns.length);
    });
});

test('paper has the picture with patterns, and a legend that goes with it', async () => {
    await withPage(small, '#view=timeline', async (page) => {
        const [screen, paper] = await page.evaluate(() => {
            const inks = (selector) =>
                [...document.querySelectorAll(selector)].map((canvas) => {
                    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
                    return new Set(new Uint32Array(data.buffer)).size;
                });
            window.dispatchEvent(new Event('beforeprint'));
            const found = [inks('.legend:not(.printed) canvas'), inks('.legend.printed canvas')];
            window.dispatchEvent(new Event('afterprint'));
            return found;
        });
        assert.equal(paper.length, screen.length);
        const several = (counts) => counts.filter((count) => count > 1).length;
        assert.equal(several(screen), 1); // what is reserved
        assert.equal(several(paper), paper.length - 1); // all but the one that is plain
        assert.equal(await page.locator('.printed').count(), 0);
    });
});
