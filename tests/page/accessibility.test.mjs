// axe-core finds no serious fault in any view, light or dark, wide or narrow; pictures of all are kept for people to
// look at.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { picturePath, syntheticPage, withPage } from './browser.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const small = syntheticPage('small');
const VIEWS = {
    findings: '',
    timeline: '&event=700&block=250&patterns=1',
    state: '&event=700&block=60',
    flame: '&event=700',
    compare: '',
    tables: '',
};

for (const [view, more] of Object.entries(VIEWS)) {
    for (const colorScheme of ['light', 'dark']) {
        for (const width of [1280, 390]) {
            test(`${view}, ${colorScheme}, ${width} pixels`, async () => {
                await withPage(
                    small,
                    `#view=${view}${more}`,
                    async (page) => {
                        await page.screenshot({
                            path: picturePath(`${view}-${colorScheme}-${width}`),
                            fullPage: true,
                        });
                        await page.evaluate(axe); // by the debugger's way: the policy would not let it in
                        const { violations } = await page.evaluate(() => window.axe.run(document));
                        const serious = violations.filter(
                            ({ impact }) => impact === 'serious' || impact === 'critical',
                        );
                        assert.deepEqual(
                            serious.map(
                                ({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' ')}`,
                            ),
                            [],
                        );
                        const wide = await page.evaluate(
                            () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
                        );
                        assert.ok(wide <= 0, `the page is ${wide} pixels too wide`);
                    },
                    { viewport: { width, height: 900 }, colorScheme },
                );
            });
        }
    }
}
