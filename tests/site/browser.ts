/** A headless Chromium, driven over the DevTools protocol. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Debian's browser. */
export const chromium = '/usr/bin/chromium'

/** Milliseconds for anything a page is waited for. */
const timeout = 20_000

type Params = Record<string, unknown>
type Listener = (method: string, params: EventParams) => void

/** What the events that are looked at carry, each its own part. */
interface EventParams {
  readonly exceptionDetails?: { readonly text: string; readonly exception?: { readonly description?: string } }
  readonly type?: string
  readonly args?: readonly { readonly value?: unknown; readonly description?: string }[]
  readonly entry?: { readonly level: string; readonly text: string }
  readonly request?: { readonly url: string }
  readonly response?: { readonly status: number; readonly url: string }
}

/** Levels of the console and of the browser's own log that count as problems. */
const wrong = ['error', 'warning', 'assert']

/** A connection to the browser; each page is a session on it. */
class Connection {
  #next = 1
  readonly #calls = new Map<number, { resolve: (result: Params) => void; reject: (error: Error) => void }>()
  readonly #listeners = new Map<string, Listener>()

  private constructor(readonly socket: WebSocket) {
    socket.onmessage = ({ data }) => this.#receive(JSON.parse(String(data)))
    socket.onclose = () => {
      for (const { reject } of this.#calls.values()) reject(new Error('the browser closed the connection'))
    }
  }

  static async open(url: string): Promise<Connection> {
    const socket = new WebSocket(url)
    await new Promise<void>((resolve, reject) => {
      socket.onopen = () => resolve()
      socket.onerror = () => reject(new Error(`connect to ${url}`))
    })
    return new Connection(socket)
  }

  #receive(message: {
    id?: number
    result?: Params
    error?: { message: string }
    method?: string
    params?: EventParams
    sessionId?: string
  }): void {
    const call = this.#calls.get(message.id ?? 0)
    if (call) {
      this.#calls.delete(message.id ?? 0)
      if (message.error) call.reject(new Error(message.error.message))
      else call.resolve(message.result ?? {})
    } else if (message.method) this.#listeners.get(message.sessionId ?? '')?.(message.method, message.params ?? {})
  }

  call(method: string, params: Params = {}, sessionId?: string): Promise<Params> {
    const id = this.#next++
    return new Promise((resolve, reject) => {
      this.#calls.set(id, { resolve, reject })
      this.socket.send(JSON.stringify({ id, method, params, ...(sessionId && { sessionId }) }))
    })
  }

  listen(sessionId: string, listener: Listener): void {
    this.#listeners.set(sessionId, listener)
  }
}

/** One tab. */
export class Page {
  /** What went wrong since it was last emptied: errors of the console, failed requests, requests to other hosts. */
  readonly problems: string[] = []
  #loaded: (() => void) | undefined

  constructor(
    readonly connection: Connection,
    readonly session: string,
    readonly origin: string,
  ) {
    connection.listen(session, (method, params) => this.#happened(method, params))
  }

  call(method: string, params: Params = {}): Promise<Params> {
    return this.connection.call(method, params, this.session)
  }

  #happened(method: string, params: EventParams): void {
    const { exceptionDetails, type = '', args = [], entry, request, response } = params
    if (method === 'Page.loadEventFired') this.#loaded?.()
    if (method === 'Runtime.exceptionThrown')
      this.problems.push(`exception: ${exceptionDetails?.exception?.description ?? exceptionDetails?.text}`)
    if (method === 'Runtime.consoleAPICalled' && wrong.includes(type))
      this.problems.push(`console: ${args.map(({ value, description }) => value ?? description).join(' ')}`)
    if (method === 'Log.entryAdded' && entry && wrong.includes(entry.level)) this.problems.push(`log: ${entry.text}`)
    if (method === 'Network.requestWillBeSent' && request && !request.url.startsWith(this.origin) && !/^(data|blob):/.test(request.url))
      this.problems.push(`request to another host: ${request.url}`)
    if (method === 'Network.responseReceived' && response && response.status >= 400)
      this.problems.push(`${response.status}: ${response.url}`)
  }

  /** Loads an address of the site, afresh, and waits until an expression is true in it: by default that its script has rendered it. */
  async open(path: string, ready = `document.querySelector('#app').__vue_app__ !== undefined`): Promise<void> {
    const loaded = new Promise<void>((resolve) => {
      this.#loaded = resolve
    })
    const { errorText } = await this.call('Page.navigate', { url: `${this.origin}${path}` })
    if (errorText) throw new Error(`open ${path}: ${errorText}`)
    await Promise.race([loaded, Bun.sleep(timeout).then(() => Promise.reject(new Error(`open ${path}: not loaded in ${timeout} ms`)))])
    // The documentation is rendered once more by its script, whose errors count too.
    await this.until(ready)
    await this.run('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
  }

  /** The value of an expression in the page; a promise is awaited. */
  async run<T>(expression: string): Promise<T> {
    const answer = await this.call('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })
    const { result, exceptionDetails } = answer as {
      result: { value: T }
      exceptionDetails?: { text: string; exception?: { description?: string } }
    }
    if (exceptionDetails) throw new Error(`${expression}: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`)
    return result.value
  }

  /** Waits until an expression is true in the page. */
  async until(expression: string): Promise<void> {
    const end = performance.now() + timeout
    while (!(await this.run<boolean>(`Boolean(${expression})`))) {
      if (performance.now() > end) throw new Error(`not true in ${timeout} ms: ${expression}`)
      await Bun.sleep(20)
    }
  }

  /** Presses and releases a key with a modifier: 2 is Ctrl. */
  async press(key: string, modifiers = 0): Promise<void> {
    const code = key.length === 1 ? `Key${key.toUpperCase()}` : key
    const windowsVirtualKeyCode = { Enter: 13, Tab: 9 }[key] ?? key.toUpperCase().charCodeAt(0)
    // Enter acts by the character that it types.
    const down = key === 'Enter' ? { type: 'keyDown', text: '\r' } : { type: 'rawKeyDown' }
    for (const event of [down, { type: 'keyUp' }])
      await this.call('Input.dispatchKeyEvent', { ...event, key, code, modifiers, windowsVirtualKeyCode })
  }

  /** Types into what has the focus. */
  async type(text: string): Promise<void> {
    await this.call('Input.insertText', { text })
  }

  async resize(width: number, height: number): Promise<void> {
    await this.call('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false })
  }

  /** What the page looks like, as PNG. */
  async screenshot(): Promise<Uint8Array> {
    const { data } = await this.call('Page.captureScreenshot', { format: 'png' })
    return Buffer.from(String(data), 'base64')
  }
}

/** A running browser. */
export class Browser {
  private constructor(
    readonly child: Bun.Subprocess,
    readonly connection: Connection,
    readonly profile: string,
  ) {}

  static async start(): Promise<Browser> {
    const profile = mkdtempSync(join(tmpdir(), 'ichor-browser-'))
    const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--disable-extensions']
    const silent = ['--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-default-apps']
    // No name but that of this host is resolved, so whatever a page wants from elsewhere fails.
    const alone = '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'
    const child = Bun.spawn(
      [chromium, ...flags, ...silent, alone, '--remote-debugging-port=0', `--user-data-dir=${profile}`, 'about:blank'],
      {
        stdin: 'ignore',
        stdout: 'ignore',
        stderr: 'pipe',
        env: { ...process.env, HOME: profile },
      },
    )
    return new Browser(child, await Connection.open(await endpoint(child.stderr)), profile)
  }

  /** A tab for the site at an origin. */
  async page(origin: string): Promise<Page> {
    const { targetId } = await this.connection.call('Target.createTarget', { url: 'about:blank' })
    const { sessionId } = await this.connection.call('Target.attachToTarget', { targetId, flatten: true })
    const page = new Page(this.connection, String(sessionId), origin)
    for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await page.call(`${domain}.enable`)
    await page.resize(1440, 900)
    return page
  }

  async close(): Promise<void> {
    await this.connection.call('Browser.close').catch(() => {})
    await this.child.exited
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  }
}

/** The address of the protocol, which the browser writes once it listens; the rest of what it writes is dropped. */
async function endpoint(stderr: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  const reader = stderr.getReader()
  let text = ''
  for (;;) {
    const { value, done } = await reader.read()
    if (done) throw new Error(`the browser did not start:\n${text}`)
    text += decoder.decode(value, { stream: true })
    const url = /DevTools listening on (ws:\S+)/.exec(text)?.[1]
    if (!url) continue
    const drain = async () => {
      while (!(await reader.read()).done);
    }
    void drain()
    return url
  }
}
