/**
 * OAuth 2.0 device authorization (RFC 8628) before a configuration is downloaded: the console shows an address and a code, a person confirms
 * them there, and the download carries the token that the machine gets then.
 */
import * as v from 'valibot'
import { pause } from '../../../timing/pause.ts'
import { type Parameter, parameterValues } from '../../../wire/command-line.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { boundedBody } from '../../../wire/http/bounded-body.ts'
import type { Outbound } from '../../outbound.ts'
import type { Look } from './source.ts'
import { isVariable } from './variables.ts'

const prefix = 'talos.config.oauth.'
const grantType = 'urn:ietf:params:oauth:grant-type:device_code'
const largestAnswer = 64 << 10
/** Seconds: between two polls unless the server specifies another interval, and what `slow_down` adds (RFC 8628, sections 3.2 and 3.5). */
const usualInterval = 5
const slowerBy = 5

/** The parameters of the kernel command line. */
export interface DeviceFlow {
  readonly clientId: string
  readonly clientSecret: string | undefined
  readonly audience: string | undefined
  readonly scopes: readonly string[]
  readonly deviceUrl: string | undefined
  readonly tokenUrl: string | undefined
  /** Variables of the address that the device request states too. */
  readonly variables: readonly string[]
}

/** Reads the parameters; undefined without `client_id`. Throws a one-line error for others without it, and for what is no address. */
export function deviceFlowOf(parameters: readonly Parameter[]): DeviceFlow | undefined {
  const all = (name: string) => parameterValues(parameters, `${prefix}${name}`)
  const last = (name: string) => all(name).at(-1) || undefined
  const clientId = last('client_id')
  const names = ['client_secret', 'audience', 'scope', 'device_auth_url', 'token_url', 'extra_variable']
  const lonely = names.find((name) => all(name).length > 0)
  if (clientId === undefined) {
    if (lonely) throw new Error(`read "${prefix}${lonely}": "${prefix}client_id" is not on the kernel command line`)
    return undefined
  }
  for (const name of ['device_auth_url', 'token_url']) {
    const url = last(name)
    if (url !== undefined && !/^https?:\/\//i.test(URL.canParse(url) ? url : ''))
      throw new Error(`read "${prefix}${name}": "${url}" is no http(s) address`)
  }
  const variables = all('extra_variable').map((name) => name.toLowerCase())
  const unknown = variables.find((name) => !isVariable(name))
  if (unknown !== undefined) throw new Error(`read "${prefix}extra_variable": unknown variable "${unknown}"`)
  return {
    clientId,
    clientSecret: last('client_secret'),
    audience: last('audience'),
    scopes: all('scope'),
    deviceUrl: last('device_auth_url'),
    tokenUrl: last('token_url'),
    variables,
  }
}

const deviceAnswer = v.object({
  device_code: v.string(),
  user_code: v.string(),
  verification_uri: v.string(),
  verification_uri_complete: v.optional(v.string()),
  expires_in: v.optional(v.number(), 1800),
  interval: v.optional(v.number(), usualInterval),
})
const tokenAnswer = v.object({ access_token: v.string(), token_type: v.optional(v.string(), 'Bearer') })
const refusal = v.object({ error: v.string(), error_description: v.optional(v.string()) })

interface Request {
  readonly code: v.InferOutput<typeof deviceAnswer>
  /** Milliseconds of the clock that does not jump. */
  readonly expires: number
  /** Seconds between two polls. */
  interval: number
}

/** The authorization of one machine, which goes on where an attempt that took too long has ended. */
export class DeviceLogin {
  #request: Request | undefined
  #authorization: string | undefined

  constructor(
    private readonly flow: DeviceFlow,
    private readonly outbound: Pick<Outbound, 'fetch'>,
    /** Waits; a test replaces it. */
    private readonly sleep: (milliseconds: number, signal: AbortSignal) => Promise<void> = pause,
  ) {}

  /** Names of variables whose values the request for a code states. */
  get variables(): readonly string[] {
    return this.flow.variables
  }

  /** The header `Authorization` for a URL; waits until a person has confirmed the code. Throws a one-line error. */
  async authorization(url: string, variables: Readonly<Record<string, string>>, look: Look): Promise<string> {
    this.#authorization ??= await this.#obtain(url, variables, look)
    return this.#authorization
  }

  /** Forgets a token that a server refused. */
  forget(): void {
    this.#authorization = undefined
    this.#request = undefined
  }

  async #obtain(url: string, variables: Readonly<Record<string, string>>, { signal, log }: Look): Promise<string> {
    const { flow } = this
    const common = {
      client_id: flow.clientId,
      ...(flow.scopes.length > 0 && { scope: flow.scopes.join(' ') }),
      ...(flow.audience && { audience: flow.audience }),
      ...variables,
    }
    if (!this.#request || performance.now() > this.#request.expires) this.#request = await this.#begin(url, common, signal)
    const request = this.#request
    const { user_code: code, verification_uri: page, verification_uri_complete: whole } = request.code
    log.info('confirm the download of the machine configuration', { at: whole ?? page, code })
    const secret = flow.clientSecret && { client_secret: flow.clientSecret }
    const form = { grant_type: grantType, device_code: request.code.device_code, ...common, ...secret }
    const tokenUrl = flow.tokenUrl ?? beside(url, '/token')
    while (performance.now() < request.expires) {
      await this.sleep(request.interval * 1000, signal)
      if (signal.aborted) throw new Error(`wait for the confirmation of code ${code} at ${page}: not yet`)
      const answer = await this.#post(tokenUrl, form, signal)
      const token = v.safeParse(tokenAnswer, answer)
      if (token.success) return `${token.output.token_type} ${token.output.access_token}`
      const { error, error_description: description } = v.is(refusal, answer) ? answer : { error: 'neither a token nor an error' }
      if (error === 'slow_down') request.interval += slowerBy
      else if (error !== 'authorization_pending') {
        this.#request = undefined
        throw new Error(`authorize at "${tokenUrl}": ${error}${description ? `: ${description}` : ''}`.split('\n')[0])
      }
    }
    this.#request = undefined
    throw new Error(`wait for the confirmation of code ${code} at ${page}: it has expired`)
  }

  async #begin(url: string, form: Record<string, string>, signal: AbortSignal): Promise<Request> {
    const deviceUrl = this.flow.deviceUrl ?? beside(url, '/device/code')
    const answer = await this.#post(deviceUrl, form, signal)
    if (v.is(refusal, answer)) throw new Error(`authorize at "${deviceUrl}": ${answer.error}`.split('\n')[0])
    const code = v.safeParse(deviceAnswer, answer)
    if (!code.success) throw new Error(`authorize at "${deviceUrl}": the answer has no device code`)
    const { expires_in: seconds, interval } = code.output
    return { code: code.output, expires: performance.now() + seconds * 1000, interval: Math.max(1, interval) }
  }

  /** Posts a form; the answer is JSON, also that of a refusal. */
  async #post(url: string, form: Record<string, string>, signal: AbortSignal): Promise<unknown> {
    try {
      const response = await this.outbound.fetch(url, {
        method: 'POST',
        signal,
        headers: { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams(form).toString(),
      })
      const body = await boundedBody(response, largestAnswer)
      if (!response.ok && response.status !== 400 && response.status !== 401) throw new Error(`the server answered ${response.status}`)
      return JSON.parse(body.toString())
    } catch (error) {
      throw new Error(`authorize at "${url}": ${signal.aborted ? 'no answer in time' : messageOf(error).split('\n')[0]}`)
    }
  }
}

/** An address of the same server. */
const beside = (url: string, path: string): string => new URL(path, url).href
