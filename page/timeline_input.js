// Mouse, touch and keys on a timeline chart: wheel zooms, a drag pans, Shift and a drag selects a span.

const CLICK_DISTANCE = 4; // pixels that a hand moves during a click

// HANDLERS: { hover(place or null, x, y), pick(event, block or null), span(from, to), key(event): whether it was used }
export function listenToChart(chart, handlers) {
    const { overlay } = chart;
    overlay.addEventListener('wheel', (event) => turnWheel(chart, event), { passive: false });
    overlay.addEventListener('dblclick', (event) => chart.zoom(0.25, event.offsetX));
    overlay.addEventListener('keydown', (event) => {
        if (handlers.key(event)) event.preventDefault();
    });
    listenToPointers(chart, handlers);
}

function turnWheel(chart, event) {
    event.preventDefault();
    // With Shift, browsers turn the wheel sideways.
    const turned = event.shiftKey ? event.deltaY || event.deltaX : event.deltaY;
    const factor = 1.0015 ** Math.max(-400, Math.min(400, turned));
    if (event.shiftKey || event.altKey) chart.zoomHeight(factor, event.offsetY);
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) chart.pan(-event.deltaX, 0);
    else chart.zoom(factor, event.offsetX);
}

function listenToPointers(chart, handlers) {
    const { overlay } = chart;
    const pointers = new Map();
    let drag = null;
    overlay.addEventListener('pointerdown', (event) => {
        if (event.button !== 0) return;
        overlay.setPointerCapture(event.pointerId);
        pointers.set(event.pointerId, event);
        const { offsetX: x, offsetY: y } = event;
        const isFinger = event.pointerType === 'touch'; // up and down it scrolls the page
        drag = { x, y, lastX: x, lastY: y, moved: false, span: event.shiftKey, isFinger };
    });
    overlay.addEventListener('pointermove', (event) => {
        if (pointers.has(event.pointerId) && pointers.size === 2) pinch(chart, pointers, event);
        else if (drag) continueDrag(chart, drag, event, handlers);
        else handlers.hover(chart.blockAtPoint(event.offsetX, event.offsetY), event.offsetX, event.offsetY);
        if (pointers.has(event.pointerId)) pointers.set(event.pointerId, event);
    });
    const release = (event) => {
        pointers.delete(event.pointerId);
        if (drag && !drag.moved && event.type === 'pointerup') {
            const place = chart.blockAtPoint(event.offsetX, event.offsetY);
            handlers.pick(chart.momentAt(event.offsetX), place ? place.block : null);
        }
        drag = null;
        chart.dragging = false;
        chart.schedule();
    };
    overlay.addEventListener('pointerup', release);
    overlay.addEventListener('pointercancel', release);
    overlay.addEventListener('pointerleave', () => handlers.hover(null, 0, 0));
}

function continueDrag(chart, drag, event, handlers) {
    if (!drag.moved && Math.hypot(event.offsetX - drag.x, event.offsetY - drag.y) < CLICK_DISTANCE) return;
    drag.moved = true;
    chart.dragging = true;
    handlers.hover(null, 0, 0);
    if (drag.span) {
        const [from, to] = [drag.x, event.offsetX]
            .sort((a, b) => a - b)
            .map((x) => Math.floor(chart.eventAt(x)));
        handlers.span(Math.max(0, from), Math.min(chart.history.last, to));
    } else {
        chart.pan(event.offsetX - drag.lastX, drag.isFinger ? 0 : event.offsetY - drag.lastY);
    }
    drag.lastX = event.offsetX;
    drag.lastY = event.offsetY;
}

function pinch(chart, pointers, event) {
    const [other] = [...pointers.values()].filter((one) => one.pointerId !== event.pointerId);
    const before = pointers.get(event.pointerId);
    const was = Math.abs(before.offsetX - other.offsetX),
        is = Math.abs(event.offsetX - other.offsetX);
    if (was > 8 && is > 8) chart.zoom(was / is, (event.offsetX + other.offsetX) / 2);
}
