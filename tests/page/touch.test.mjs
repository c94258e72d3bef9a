// The page under fingers, on a narrow screen.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settle, syntheticPage, withPage } from './browser.mjs';

const small = syntheticPage('small');
const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };

// FINGERS: of each the points [x, y] that it passes.
async function touch(page, fingers) {
    const session = await page.context().newCDPSession(page);
    const send = (type, i) => {
        const touchPoints = fingers.map((points, id) => ({ id, x: points[i][0], y: points[i][1] }));
        return session.send('Input.dispatchTouchEvent', {
            type,
            touchPoints: type === 'touchEnd' ? [] : touchPoints,
        });
    };
    await send('touchStart', 0);
    for (let i = 1; i < fingers[0].length; i++) await send('touchMove', i);
    await send('touchEnd', 0);
    await settle(page);
}

async function middle(page) {
    const box = await page.locator('.timeline .overlay').boundingBox();
    return [box.x + box.width / 2, box.y + box.height / 2];
}

const line = ([x, y], [dx, dy]) =>
    Array.from({ length: 12 }, (_, i) => [x + (dx * i) / 11, y + (dy * i) / 11]);
const view = (page) => page.evaluate(() => ({ ...window.gmdPage.views[1].chart.view }));

test('a finger that moves up on the timeline scrolls the page past it', async () => {
    await withPage(
        small,
        '#view=timeline',
        async (page) => {
            const before = await view(page);
            await touch(page, [line(await middle(page), [0, -260])]);
            assert.ok((await page.evaluate(() => window.scrollY)) > 100);
            assert.deepEqual(await view(page), before);
        },
        phone,
    );
});

test('a finger that moves sideways pans the timeline, and leaves its height', async () => {
    await withPage(
        small,
        '#view=timeline&range=900-1500',
        async (page) => {
            const before = await view(page);
            await touch(page, [line(await middle(page), [-120, 6])]);
            const after = await view(page);
            assert.ok(after.from > before.from + 50, `${before.from} and ${after.from}`);
            assert.deepEqual([after.bottom, after.top], [before.bottom, before.top]);
        },
        phone,
    );
});

test('two fingers that move apart zoom into the timeline', async () => {
    await withPage(
        small,
        '#view=timeline',
        async (page) => {
            const before = await view(page);
            const [x, y] = await middle(page);
            await touch(page, [line([x - 20, y], [-90, 0]), line([x + 20, y], [90, 0])]);
            const after = await view(page);
            assert.ok(after.to - after.from < (before.to - before.from) / 2);
            assert.equal(await page.evaluate(() => window.visualViewport.scale), 1);
        },
        phone,
    );
});

// Where a table goes on beyond the screen, its edge is darker than its ground.
for (const colorScheme of ['light', 'dark'])
    test(`a table that is cut off has a shadow at its edge, ${colorScheme}`, async () => {
        await withPage(
            small,
            '#view=state&event=700',
            async (page) => {
                const scroll = page.locator('.state .scroll');
                assert.ok(await scroll.evaluate((node) => node.scrollWidth > node.clientWidth));
                await scroll.scrollIntoViewIfNeeded();
                const box = await scroll.boundingBox();
                const light = async () => {
                    const clip = { x: box.x + box.width - 3, y: box.y + 4, width: 2, height: 2 };
                    const shot = (await page.screenshot({ clip })).toString('base64');
                    return page.evaluate(async (data) => {
                        const image = new Image();
                        image.src = `data:image/png;base64,${data}`;
                        await image.decode();
                        const canvas = document.createElement('canvas');
                        const context = canvas.getContext('2d');
                        context.drawImage(image, 0, 0);
                        return context.getImageData(0, 0, 1, 1).data[0];
                    }, shot);
                };
                const cut = await light();
                await scroll.evaluate((node) => (node.scrollLeft = node.scrollWidth));
                assert.ok(cut < (await light()) - 8);
            },
            { ...phone, colorScheme },
        );
    });

const CONTROLS = 'button, input, select, nav a, h1, .sums, .version, .legend .entry';

for (const name of ['findings', 'timeline', 'state', 'flame', 'compare', 'tables'])
    test(`no two controls of ${name} overlap on a narrow screen`, async () => {
        await withPage(
            small,
            `#view=${name}&event=700`,
            async (page) => {
                const overlapping = await page.evaluate((selector) => {
                    const seen = [...document.querySelectorAll(selector)]
                        .filter((node) => node.offsetParent && !node.closest('.scroll, .views'))
                        .map((node) => ({ node, box: node.getBoundingClientRect() }));
                    const pairs = [];
                    for (const [i, one] of seen.entries())
                        for (const other of seen.slice(i + 1)) {
                            if (one.node.contains(other.node)) continue;
                            const wide =
                                Math.min(one.box.right, other.box.right) -
                                Math.max(one.box.left, other.box.left);
                            const high =
                                Math.min(one.box.bottom, other.box.bottom) -
                                Math.max(one.box.top, other.box.top);
                            if (wide > 1 && high > 1)
                                pairs.push([one.node.textContent, other.node.textContent]);
                        }
                    return pairs;
                }, CONTROLS);
                assert.deepEqual(overlapping, []);
            },
            phone,
        );
    });
