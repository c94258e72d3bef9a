// The numbers of events as all of gmd's outputs have them: an event's place in the recording, from 0, over all of its
// devices. Within the page event 0 is the state before the first one of a device, which has no number.

const START = -1; // the number of that state, where one is needed

export function numberOfEvent(columns, prefix, event) {
    if (event < 1) return START;
    const name = `${prefix}e.number`;
    return columns.has(name) ? columns.get(name)[event] : event - 1;
}

// The last event with at most NUMBER, in a history of EVENTS.
export function eventOfNumber(columns, prefix, number, events) {
    const name = `${prefix}e.number`;
    if (number <= START) return 0;
    if (!columns.has(name)) return Math.min(number + 1, events - 1);
    const numbers = columns.get(name);
    let low = 0,
        high = events - 1;
    while (low < high) {
        const middle = (low + high + 1) >>> 1;
        if (numbers[middle] <= number) low = middle;
        else high = middle - 1;
    }
    return low;
}
