'use strict';
// Shows what the program sends. Texts of the program enter the page as text, never as HTML.
const $ = id => document.getElementById(id);
const TABS = ['overview', 'tasks', 'processes', 'stalls', 'recording'];
const SVG = 'http://www.w3.org/2000/svg';

/// Makes an element with attributes and children. Strings become text.
function make(name, attributes, ...children) {
  const svg = ['svg', 'polyline', 'rect'].includes(name);
  const element = svg ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (key.startsWith('on')) element[key] = value;
    else if ((value ?? false) !== false) element.setAttribute(key, value);
  }
  element.append(...children.filter(child => child !== null).map(child =>
    child instanceof Node ? child : String(child)));
  return element;
}

const count = number => number >= 1e7 ? (number / 1e6).toFixed(0) + ' M'
  : number >= 1e6 ? (number / 1e6).toFixed(1) + ' M'
  : Math.round(number).toLocaleString('en').replaceAll(',', '\u202f');
const percent = part => Number.isFinite(part) ? (100 * part).toFixed(0) + '\u202f%' : '–';

/// Writes a time of milliseconds.
function time(ms) {
  if (ms < 1) return '0 s';
  if (ms < 1000) return Math.round(ms) + ' ms';
  const s = ms / 1000;
  if (s < 10) return s.toFixed(1) + ' s';
  if (s < 120) return Math.floor(s) + ' s';
  if (s < 7200) return Math.floor(s / 60) + ' min';
  if (s < 172800) return Math.floor(s / 3600) + ' h';
  return Math.floor(s / 86400) + ' d';
}

/// Shortens the name of a function: leaves the parameters of its type parameters out.
function brief(name) {
  if (name.length < 80) return name;
  let text = '', depth = 0;
  for (const c of name) {
    if (c === '<' && ++depth === 2) text += '<…>';
    else if (depth < 2) text += c;
    if (c === '>' && depth) depth -= 1;
  }
  return text;
}

/// Shortens a place to the crate's folder: the rest of the path is that of a machine.
const short = place => place.replace(/^.*\/(?=[^/]+\/(src|tests|examples|benches)\/)/, '');

/// Shortens a place to the last parts of its path.
const last = (place, parts) => place.split('/').slice(-parts).join('/');

// The tabs. The address keeps the chosen one, and the search.
let tab = 'overview';

function choose(name, focus) {
  if (!TABS.includes(name)) name = 'overview';
  tab = name;
  for (const each of TABS) {
    $(each).hidden = each !== name;
    $('tab-' + each).setAttribute('aria-selected', each === name);
    $('tab-' + each).tabIndex = each === name ? 0 : -1;
  }
  if (focus) $('tab-' + name).focus();
  const search = name === 'tasks' && $('search').value;
  const hash = '#' + name + (search ? '?' + new URLSearchParams({ search }) : '');
  if (location.hash !== hash) history.replaceState(null, '', hash);
  if (name === 'tasks') {
    measure();
    look();
  }
  show();
}

function follow() {
  const [name, query] = location.hash.slice(1).split('?');
  $('search').value = new URLSearchParams(query).get('search') ?? '';
  choose(name);
}

// The events of the program.
let source = null;
let before = null, now = null, stalls = null;
const history_ = []; // The polls of each worker in each of the last 60 seconds.

function connect() {
  source?.close();
  source = null;
  if (document.hidden) return; // A page that nobody sees costs nothing.
  source = new EventSource('/events');
  source.onopen = () => live('on', 'live');
  source.onerror = async () => {
    live('off', 'no answer');
    if (source?.readyState !== EventSource.CLOSED) return; // It tries again by itself.
    const answer = await fetch('/metrics', { method: 'HEAD' }).catch(() => null);
    if (answer?.status === 401) return live('off', 'the token is missing: open /?token=…');
    if (answer) live('off', 'too many pages are open');
    setTimeout(connect, 3000);
  };
  source.addEventListener('tick', event => {
    const next = JSON.parse(event.data);
    if (next.at_us === now?.at_us) return; // Pages share a tick for a second.
    before = next.at_us > now?.at_us ? now : null;
    if (!before) cycles = []; // It is another process, or the first tick.
    now = next;
    live('on', 'live');
    noteRestarts();
    if (before) {
      history_.push(now.workers.map((w, i) => rate(w.polls, before.workers[i]?.polls)));
      if (history_.length > 60) history_.shift();
    }
    show();
  });
  source.addEventListener('stalls', event => {
    stalls = JSON.parse(event.data);
    const at = performance.now();
    for (const stall of stalls.stalls) stall.at = at - stall.ago_ms;
    show();
  });
}

function live(state, text) {
  if ($('live').textContent === text) return;
  $('live').className = state;
  $('live').textContent = text;
}

const seconds = () => (now.at_us - before.at_us) / 1e6;
const rate = (new_, old) => before && old !== undefined ? Math.max(0, new_ - old) / seconds() : NaN;
const per = value => Number.isFinite(value) ? count(value) : '–';

function show() {
  if (!now || isPressed) return;
  const title = [now.program, now.name !== 'main' && now.name].filter(Boolean).join(' · ');
  $('title').textContent = title || 'selvedge-top';
  document.title = (title ? title + ' – ' : '') + 'selvedge-top';
  $('n-tasks').textContent = count(now.live_tasks);
  const processes = now.schedulers.reduce((sum, one) => sum + one.processes, 0);
  $('tab-processes').hidden = !now.schedulers.length;
  $('n-processes').textContent = count(processes);
  $('n-processes').className = crashes() ? 'bad' : '';
  $('n-stalls').textContent = stalls?.count ? count(stalls.count) : '';
  $('n-stalls').className = recentStalls().length ? 'bad' : '';
  $('tab-recording').hidden = now.recording === null;
  $('n-recording').textContent = now.recording ? '●' : '';
  $('n-recording').className = now.recording ? 'bad' : '';
  const groups = shares();
  if (tab === 'overview') showOverview(groups);
  if (tab === 'processes') showProcesses();
  if (tab === 'stalls') showStalls();
  if (tab === 'recording') showRecording();
}

// A row or button under a pressed pointer stays in its place: a click needs its element. After a
// touch, the click comes a little later than the pointer's end.
let isPressed = false;
addEventListener('pointerdown', event => {
  isPressed = event.button === 0 && event.target.closest('tr, li, .row') !== null;
}, true);
for (const end of ['pointerup', 'pointercancel', 'contextmenu', 'blur']) {
  addEventListener(end, event => {
    // Elements lose the focus, too: a press moves it.
    if (end !== 'blur' || event.target === window) setTimeout(release);
  }, true);
}

function release() {
  isPressed = false;
  show();
}

// Elements of the same key are the same one. Others are by their place.
const keyOf = node => node.dataset?.key ?? node.nodeName;

/// Gives an element these children, unless it has a selected text, to copy. An old child of the
/// same key stays and gets the new one's contents: so it keeps the focus, and a click that has
/// begun.
function fill(element, children) {
  const selection = getSelection();
  if (!selection.isCollapsed && element.contains(selection.anchorNode)) return;
  const focused = document.activeElement;
  const keys = new Set(children.map(keyOf));
  let old = element.firstChild;
  const skip = () => { const gone = old; old = old.nextSibling; gone.remove(); };
  for (const child of children) {
    while (old && !keys.has(keyOf(old))) skip();
    let same = old;
    while (same && keyOf(same) !== keyOf(child)) same = same.nextSibling;
    if (same && same === old) old = old.nextSibling;
    else element.insertBefore(same ?? child, old);
    if (same) renew(same, child);
  }
  while (old) skip();
  // A move takes the focus away.
  if (document.activeElement !== focused && element.contains(focused)) focused.focus();
}

/// Gives an element the attributes, handlers and children of another one.
function renew(old, next) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== next.data) old.data = next.data;
    return;
  }
  for (const { name } of [...old.attributes]) {
    if (!next.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    // The page's rights forbid a style as an attribute.
    if (name === 'style') old.style.cssText = value;
    else if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  old.onclick = next.onclick;
  old.onkeydown = next.onkeydown;
  fill(old, [...next.childNodes]);
}

// The overview.
function shares() {
  if (!before) return [];
  // Names may repeat: the nth group of a name is the nth one of a second ago.
  const left = [...before.groups], groups = [];
  for (const group of now.groups) {
    const at = left.findIndex(old => old.name === group.name && old.parent === group.parent);
    if (at < 0) continue;
    const [old] = left.splice(at, 1);
    groups.push({ ...group, ran: Math.max(0, group.runtime_us - old.runtime_us),
      // On each worker a group starves by itself: the worst one counts.
      starved: Math.max(0, ...group.starving_us.map((starved, worker) =>
        starved - old.starving_us[worker])),
      late: group.violations - old.violations, turns: group.turns - old.turns });
  }
  const all = groups.filter(group => !group.parent).reduce((sum, group) => sum + group.ran, 0);
  const busy = group => group.ran + group.starved > 0.05 * seconds() * 1e6;
  for (const group of groups) {
    const rivals = groups.filter(other => other.parent === group.parent && busy(other));
    const sum = rivals.reduce((sum, other) => sum + other.shares, 0);
    group.rivals = rivals.length - 1;
    group.part = busy(group) && sum ? group.shares / sum : NaN;
    group.gets = all ? group.ran / all : NaN;
    group.starves = Math.min(1, group.starved / (seconds() * 1e6));
  }
  const named = new Map(groups.map(group => [group.name, group]));
  const asks = (group, depth = 0) => group.parent && depth < 50 && named.has(group.parent)
    ? group.part * asks(named.get(group.parent), depth + 1) : group.part;
  for (const group of groups) group.asks = asks(group);
  return groups;
}

const recentStalls = () => (stalls?.stalls ?? []).filter(stall =>
  performance.now() - stall.at < 60000);

function findings(groups) {
  const found = [];
  const go = where => typeof where === 'string' ? () => choose(where) : where;
  const bad = (where, ...texts) => found.push(['bad', go(where), texts.join(' ')]);
  const warn = (where, ...texts) => found.push(['warn', go(where), texts.join(' ')]);
  if (cycles.length) {
    bad(openCycles, `${cycles[0].split(':')[0]}, ${time(performance.now() - asked)} ago.`,
      cycles.length > 1 ? `There are ${cycles.length} such circles.` : '');
  }
  const recent = recentStalls();
  if (recent.length) {
    // The last report of a poll may come after its end, and then has no cause.
    const known = recent.filter(stall => stall.cause !== 'unknown');
    const worst = (known.length ? known : recent)
      .reduce((a, b) => a.lasted_us > b.lasted_us ? a : b);
    const reports = recent.length === 1 ? '1 report' : `${recent.length} reports`;
    bad('stalls', `Worker ${worst.worker} was stuck in a poll of ${whose(worst)} for`,
      `${time(worst.lasted_us / 1000)}: ${worst.cause}. ${reports} in the last minute.`);
  }
  for (const group of groups) {
    // A group may get much on one worker, and starve on another.
    const starves = group.starves > 0.9 || (group.starves > 0.5 && group.gets < 0.25);
    if (starves && group.queued > 0 && group.rivals > 0) {
      bad('overview', `The group ${group.name} starves: it has tasks to run, but others run for`,
        `${percent(group.starves)} of the time. Its ${count(group.shares)} shares ask for`,
        `${percent(group.asks)}.`);
    }
    if (group.late > 1 && group.late > group.turns / 2) {
      warn('overview', `The group ${group.name} keeps others waiting: ${count(group.late)} of`,
        `${count(group.turns)} turns were too long.`);
    }
  }
  for (const scheduler of now.schedulers) {
    for (const row of scheduler.rows) {
      const restarts = restartsOf(scheduler, row);
      if (restarts < CRASHES) continue;
      bad('processes', `The process ${row.names[0] ?? row.pid} ends again and again:`,
        `${count(restarts)} restarts in the last ${time(WINDOW)}, ${count(row.restarts)} in all.`);
    }
  }
  if (now.blocking_queue_depth > 0) {
    warn('overview', `${count(now.blocking_queue_depth)} blocking closures wait for one of`,
      `${count(now.blocking_threads)} threads.`);
  }
  return found;
}

const whose = stall => stall.name ? `“${stall.name}”`
  : stall.place ? `a task from ${short(stall.place)}` : `task ${stall.task ?? '?'}`;

function showOverview(groups) {
  const found = findings(groups).map(([kind, where, text]) => make('li',
    { class: kind, 'data-key': text.replace(/\d.*/, '') },
    make('button', { onclick: where }, text)));
  const none = before ? 'No stall, no starving group, no crash loop.' : 'Looking …';
  const look = make('li', { class: 'look', 'data-key': 'look' }, make('button',
    { onclick: () => { choose('tasks'); ask(); } }, 'Look for tasks that wait for each other'));
  if (!found.length) found.push(make('li', { class: 'good' }, none));
  fill($('findings'), cycles.length ? found : [...found, look]);
  const facts = [['tasks', count(now.live_tasks)],
    ['spawns/s', per(rate(now.spawns, before?.spawns))],
    ['wakes from outside/s', per(rate(now.remote_wakes, before?.remote_wakes))],
    ['in the injector', count(now.injector_depth)],
    ['blocking threads', count(now.blocking_threads - now.idle_blocking_threads) + ' of ' +
      count(now.blocking_threads)]];
  fill($('facts'), facts.map(([name, value]) =>
    make('div', {}, make('dt', {}, name), make('dd', {}, value))));
  const most = Math.max(1, ...history_.flat().filter(Number.isFinite));
  const isMeasured = now.workers.some(worker => worker.busy_us > 0);
  $('busy-head').title = isMeasured ? '' : 'for this, build the runtime with measure_busy(true)';
  fill($('workers'), now.workers.map((worker, index) => {
    const old = before?.workers[index];
    const busy = isMeasured ? Math.min(1, rate(worker.busy_us, old?.busy_us) / 1e6) : NaN;
    return make('tr', {}, make('td', {}, index),
      make('td', { class: 'n' }, percent(busy)),
      make('td', { class: 'n' }, per(rate(worker.polls, old?.polls))),
      make('td', { class: 'n' }, count(worker.queue)),
      make('td', { class: 'n wide' }, per(rate(worker.steals, old?.steals))),
      make('td', { class: 'n wide' }, per(rate(worker.parks, old?.parks))),
      make('td', { class: 'graph' }, line(history_.map(each => each[index]), most)));
  }));
  $('groups-box').hidden = !groups.length;
  fill($('groups'), groups.map(group => make('tr', {},
    make('td', {}, group.name,
      group.parent ? make('span', { class: 'faint' }, ' in ' + group.parent) : null),
    make('td', { class: 'n' }, count(group.shares)),
    make('td', { class: 'n' }, percent(group.asks)),
    make('td', { class: 'n' }, percent(group.gets)),
    make('td', { class: 'n' + (group.starves > 0.5 ? ' bad' : '') }, percent(group.starves)),
    make('td', { class: 'n wide' }, count(group.queued)),
    // The first group, main, does not count its tasks.
    make('td', { class: 'n wide' }, group.name === now.groups[0].name ? '–' : count(group.tasks)),
    make('td', { class: 'graph' }, bar(group)))));
}

/// Draws numbers of the last minute.
function line(values, most) {
  const points = values.map((value, index) =>
    `${60 - values.length + index},${(19 - 17 * (value || 0) / most).toFixed(1)}`);
  return make('svg', { viewBox: '0 0 59 20', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    make('polyline', { points: points.join(' ') }));
}

/// Draws the part that a group got, and a mark at the part that its shares ask for.
function bar(group) {
  const part = value => Number.isFinite(value) ? Math.min(1, value) * 100 : 0;
  return make('svg', { viewBox: '0 0 100 20', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    make('rect', { class: 'track', x: 0, y: 7, width: 100, height: 6 }),
    make('rect', { class: 'got' + (group.starves > 0.5 ? ' bad' : ''), x: 0, y: 7,
      width: part(group.gets), height: 6 }),
    Number.isFinite(group.asks) ? make('rect', { class: 'asked',
      x: Math.min(99.4, part(group.asks)), y: 3, width: .6, height: 14 }) : null);
}

// Processes. `seen` has the restarts of each at the ticks of the last ten seconds. So many restarts
// in that time are a crash loop.
const WINDOW = 10000, CRASHES = 3;
const seen = new Map();

function noteRestarts() {
  const at = performance.now();
  const there = new Set();
  for (const scheduler of now.schedulers) {
    for (const row of scheduler.rows) {
      const key = scheduler.name + '\0' + row.pid;
      there.add(key);
      const list = seen.get(key) ?? [];
      list.push([at, row.restarts]);
      while (list.length > 1 && at - list[1][0] > WINDOW) list.shift();
      seen.set(key, list);
    }
  }
  for (const key of seen.keys()) if (!there.has(key)) seen.delete(key);
}

function restartsOf(scheduler, row) {
  const list = seen.get(scheduler.name + '\0' + row.pid);
  return list ? row.restarts - list[0][1] : 0;
}

const crashes = () => now.schedulers.some(scheduler =>
  scheduler.rows.some(row => restartsOf(scheduler, row) >= CRASHES));

function showProcesses() {
  const parts = [];
  for (const scheduler of now.schedulers) {
    // The page numbers equal names, so a name is one scheduler's.
    const old = before?.schedulers.find(old => old.name === scheduler.name);
    const facts = [['processes', count(scheduler.processes)],
      ['messages/s', per(rate(scheduler.delivered, old?.delivered))],
      ['abnormal ends', count(scheduler.abnormal)], ['panics', count(scheduler.panics)],
      ['restarts', count(scheduler.restarts)], ['dead letters', count(scheduler.dead_letters)]];
    parts.push(make('h2', {}, scheduler.name), make('p', { class: 'faint' },
      facts.map(([name, value]) => `${name} ${value}`).join(' · ')));
    const head = make('tr', {}, make('th', {}, 'process'), make('th', { class: 'wide' }, 'type'),
      make('th', {}, 'phase'), make('th', { class: 'n' }, 'mailbox'),
      make('th', { class: 'n' }, 'restarts'));
    const rows = scheduler.rows.map(row => {
      const restarts = restartsOf(scheduler, row);
      const indent = '\u2003'.repeat(Math.min(row.depth, 12)) + (row.depth ? '└ ' : '');
      return make('tr', {},
        make('td', {}, make('span', { class: 'faint' }, indent), row.names.join(', ') || '',
          make('span', { class: 'faint' }, (row.names.length ? ' ' : '') + row.pid)),
        make('td', { class: 'wide' }, row.kind),
        make('td', {}, row.phase.toLowerCase()),
        make('td', { class: 'n' }, row.messages === null ? 'some' : count(row.messages)),
        make('td', { class: 'n' + (restarts >= CRASHES ? ' bad' : '') }, count(row.restarts) +
          (restarts >= CRASHES ? ` (${count(restarts)} in ${time(WINDOW)})` : '')));
    });
    parts.push(make('table', {}, make('thead', {}, head), make('tbody', {}, ...rows)));
    const left = scheduler.processes - scheduler.rows.length;
    if (left > 0) {
      parts.push(make('p', { class: 'hint' },
        `${count(left)} more, with fewer restarts or messages, or without a name.`));
    }
  }
  fill($('processes'), parts);
}

// Stalls.
function showStalls() {
  $('stall-hint').textContent = !now.keeps_stalls
    ? 'The program keeps no stalls: give Stalls::hook to Builder::on_stall, and Stalls to the page.'
    : stalls?.stalls.length ? 'A long poll is reported again when its age has doubled. The ' +
      'monitor reports five times a minute by default, and says how often it held a report back.'
    : 'No stall so far.';
  fill($('stall-rows'), (stalls?.stalls ?? []).map(stall => {
    const open = () => openText(`stall in ${whose(stall)}`, '/stall/' + stall.number);
    return make('tr', { class: 'opens', tabindex: 0, 'data-key': stall.number, onclick: open,
      onkeydown: event => event.key === 'Enter' && open() },
      make('td', { class: 'when' }, time(performance.now() - stall.at)),
      make('td', { class: 'n' }, time(stall.lasted_us / 1000)),
      make('td', {}, whose(stall)),
      make('td', { class: 'n wide' }, stall.worker),
      make('td', { class: 'wide' }, stall.group ?? ''),
      make('td', {}, stall.cause, stall.held_back
        ? make('span', { class: 'faint' }, ` (${count(stall.held_back)} held back before)`) : null),
      make('td', { class: 'n wide' }, count(stall.waiting)));
  }));
}

// The recording.
function showRecording() {
  $('recording-state').textContent = now.recording ? 'The recorder is on.' : 'The recorder is off.';
  $('record').textContent = now.recording ? 'Stop' : 'Start';
}

async function record() {
  const what = now?.recording ? 'stop' : 'start';
  const answer = await fetch('/recording/' + what, { method: 'POST' }).catch(() => null);
  if (answer?.ok && now) now.recording = (await answer.json()).recording;
  show();
  if (!answer?.ok) $('recording-state').textContent = answer ? await answer.text() : 'no answer';
}

// The tasks. Only the rows in view are there, and those that were fetched around them.
let rows = new Map(), matched = 0, taken = 0, total = 0, chosen = 0, fetching = null, timer = 0;
let rowHeight = 30, hasWaits = false, wanted = null;
let chosenId = null; // The chosen task's: null if none was chosen, undefined if it is unknown.
const AROUND = 30, MOST_ROWS = 200000;

function measure() {
  const root = document.documentElement, list = $('list');
  rowHeight = parseFloat(getComputedStyle(root).getPropertyValue('--row')) || 30;
  root.style.setProperty('--bar', list.offsetWidth - list.clientWidth + 'px');
}

/// Asks for the rows in view, unless the same request is under way.
async function look() {
  clearTimeout(timer);
  if (tab !== 'tasks' || document.hidden) return;
  const list = $('list');
  const first = Math.max(0, Math.floor(list.scrollTop / rowHeight) - AROUND);
  const [sort, order] = $('sort').value.split(' ');
  const query = new URLSearchParams({ search: $('search').value, sort, order: order ?? 'down',
    from: first, count: Math.ceil(list.clientHeight / rowHeight) + 2 * AROUND });
  wanted = String(query);
  if (fetching) return; // It looks again when it is done.
  fetching = wanted;
  let next = 2000;
  try {
    const answer = await fetch('/tasks?' + fetching);
    if (answer.ok) next = take(await answer.json());
    else showEmpty(await answer.text());
  } catch {
    showEmpty('no answer');
  }
  const isOld = fetching !== wanted;
  fetching = null;
  if (isOld) look();
  else timer = setTimeout(look, next);
}

function take(answer) {
  if (isPressed) return 500;
  rows = new Map(answer.rows.map((row, index) => [answer.from + index, row]));
  taken = performance.now() - answer.age_ms;
  ({ matched, total } = answer);
  hasWaits = answer.asked_ms_ago !== null;
  const moved = [...rows].find(([, row]) => row.id === chosenId);
  chosen = Math.min(moved ? moved[0] : chosen, Math.max(0, matched - 1));
  if (chosenId === undefined) chosenId = rows.get(chosen)?.id;
  const shown = Math.min(matched, MOST_ROWS);
  $('spacer').style.height = shown * rowHeight + 'px';
  const tasks = count(total) + (total === 1 ? ' task' : ' tasks');
  $('count').textContent = matched === total ? tasks
    : `${count(matched)} of ${tasks}`;
  if (shown < matched) $('count').textContent += `, the first ${count(shown)} shown`;
  draw();
  measure();
  if (!matched) showEmpty(total ? 'No task has this.' : 'There are no tasks.');
  return answer.next_ms;
}

function showEmpty(text) {
  rows = new Map();
  matched = 0;
  $('spacer').style.height = '';
  $('spacer').replaceChildren(make('p', { id: 'empty' }, text));
}

function draw() {
  const list = $('list');
  const first = Math.max(0, Math.floor(list.scrollTop / rowHeight) - 5);
  const last = Math.ceil((list.scrollTop + list.clientHeight) / rowHeight) + 5;
  const drawn = [];
  for (let index = first; index < Math.min(matched, MOST_ROWS, last); index++) {
    const element = make('div', { role: 'option', class: 'row' + (hasWaits ? ' asked' : ''),
      id: 'row-' + index, 'aria-selected': index === chosen, 'aria-posinset': index + 1,
      'aria-setsize': matched, 'data-key': rows.get(index)?.id ?? index,
      onclick: () => { pick(index); openTask(); } });
    element.style.top = index * rowHeight + 'px';
    if (rows.has(index)) element.append(...cells(rows.get(index)));
    drawn.push(element);
  }
  fill($('spacer'), drawn);
  if (matched) list.setAttribute('aria-activedescendant', 'row-' + chosen);
  else list.removeAttribute('aria-activedescendant');
}

function cells(row) {
  const old = row.state === 'waiting' || !row.polls ? performance.now() - taken : 0;
  const cell = (text, class_, title) => make('span', { class: class_, title: title || null }, text);
  return [cell(row.name ?? row.id, '', row.name && `${row.name} ${row.id}`),
    cell(row.state, row.state), cell(time(row.since_ms + old), 'n'), cell(count(row.polls), 'n'),
    cell(row.group ?? ''), cell(make('bdi', {}, last(row.place, 2)), 'place', row.place),
    cell(last(row.waits ?? '', 1), 'waits', row.waits)];
}

/// Chooses a row, and scrolls it into view.
function pick(index) {
  chosen = Math.max(0, Math.min(index, Math.min(matched, MOST_ROWS) - 1));
  chosenId = rows.get(chosen)?.id;
  const list = $('list'), top = chosen * rowHeight, bottom = top + rowHeight;
  if (top < list.scrollTop) list.scrollTop = top;
  if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight;
  draw();
}

function openTask() {
  const row = rows.get(chosen);
  if (row) openText(`task ${row.name ?? ''} ${row.id}`, '/task/' + row.id);
}

// The circles of tasks that wait for each other, of the last answer to `ask`.
let cycles = [], asked = 0;

async function ask() {
  $('ask').disabled = true;
  $('count').textContent = 'asking each task …';
  const answer = await fetch('/waits', { method: 'POST' }).catch(() => null);
  $('ask').disabled = false;
  if (!answer?.ok) {
    $('count').textContent = answer ? await answer.text() : 'no answer';
    return;
  }
  ({ cycles } = await answer.json());
  asked = performance.now();
  show();
  look();
  if (cycles.length) openCycles();
}

// The dialog of a text of the program. It can ask again for one that has a path. An answer for
// another path than the last one comes too late.
let path = null;

function openCycles() {
  path = null;
  openDialog('tasks that wait for each other', cycles.flatMap(parts));
}

function openDialog(title, children) {
  $('dialog-title').textContent = title;
  $('dialog-text').replaceChildren(...children);
  $('again').hidden = path === null;
  if (!$('dialog').open) $('dialog').showModal();
}

async function openText(title, from) {
  path = from;
  openDialog(title, [make('p', { class: 'faint' }, 'Looking …')]);
  const answer = await fetch(from).catch(() => null);
  if (path !== from) return;
  const text = answer ? await answer.text() : 'no answer';
  $('dialog-text').replaceChildren(...parts(text));
}

/// Makes paragraphs and lists of the lines of a dump. Functions are indented by four columns.
function parts(text) {
  const made = [];
  let list = null;
  const lines = text.split('\n').filter(each => each.trim());
  const isFunction = each => each?.startsWith('    ');
  for (const [index, each] of lines.entries()) {
    const line_ = each.trim();
    if (!isFunction(each)) {
      list = null;
      made.push(make('p', { class: isFunction(lines[index + 1]) ? 'part' : null }, line_));
      continue;
    }
    if (!list) made.push(list = make('ol'));
    const at = line_.lastIndexOf(' at ');
    const [function_, place] = at < 0 ? [line_, ''] : [line_.slice(0, at), line_.slice(at + 4)];
    const where = place ? make('span', { title: place }, 'at ' + short(place)) : null;
    list.append(make('li', { title: function_ }, brief(function_), where));
  }
  return made;
}

// Keys and clicks.
addEventListener('keydown', event => {
  const isTyping = event.target.matches('input, select, textarea');
  if (event.ctrlKey || event.metaKey || event.altKey || $('dialog').open) return;
  if (event.target === $('search')) {
    if (event.key === 'Escape') { $('search').value = ''; restart(); $('list').focus(); }
    else if (event.key === 'ArrowDown' || event.key === 'Enter') $('list').focus();
    else return;
    return event.preventDefault();
  }
  if (event.target.matches('[role=tab]') && ['ArrowLeft', 'ArrowRight'].includes(event.key)) {
    const shown = TABS.filter(name => !$('tab-' + name).hidden);
    const step = event.key === 'ArrowRight' ? 1 : shown.length - 1;
    choose(shown[(shown.indexOf(tab) + step) % shown.length], true);
    return event.preventDefault();
  }
  if (isTyping) return;
  if (event.key === '/') {
    choose('tasks');
    $('search').focus();
    $('search').select();
    return event.preventDefault();
  }
  const number = Number(event.key);
  if (number >= 1 && number <= TABS.length && !$('tab-' + TABS[number - 1]).hidden) {
    return choose(TABS[number - 1], true);
  }
  if (event.target === $('list')) {
    const page = Math.max(1, Math.floor($('list').clientHeight / rowHeight) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page,
      Home: -Infinity, End: Infinity };
    if (event.key in steps) pick(chosen + steps[event.key]);
    else if (event.key === 'Enter') openTask();
    else return;
    event.preventDefault();
  }
});

/// Begins at the first task again: the search or the order has changed.
function restart() {
  chosen = 0;
  chosenId = null;
  $('list').scrollTop = 0;
  choose('tasks');
}

for (const name of TABS) $('tab-' + name).addEventListener('click', () => choose(name));
let typed = 0;
$('search').addEventListener('input', () => {
  clearTimeout(typed);
  typed = setTimeout(restart, 150);
});
$('sort').addEventListener('change', () => { getSelection().removeAllRanges(); restart(); });
$('filter').addEventListener('submit', event => event.preventDefault());
$('ask').addEventListener('click', ask);
$('record').addEventListener('click', record);
$('again').addEventListener('click', () => openText($('dialog-title').textContent, path));
$('close').addEventListener('click', () => $('dialog').close());
$('dialog').addEventListener('click', event => event.target === $('dialog') && $('dialog').close());
let scrolled = 0;
$('list').addEventListener('scroll', () => {
  draw();
  clearTimeout(scrolled);
  scrolled = setTimeout(look, 80);
}, { passive: true });
addEventListener('resize', () => { measure(); draw(); look(); });
addEventListener('hashchange', follow);
document.addEventListener('visibilitychange', () => { connect(); look(); });
follow();
connect();
