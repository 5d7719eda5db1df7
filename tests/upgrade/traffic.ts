/** A client that writes and reads through the Kubernetes API without a pause, and records which writes were acknowledged. */
import { readFileSync } from 'node:fs'
import { core, type KubeClient, kubeClient, pathOf } from '../../src/kube/client.ts'
import { KubeError } from '../../src/kube/errors.ts'
import { accessOf, parseKubeconfig } from '../../src/kube/kubeconfig.ts'

/** How long a client waits for one server before it tries the next, in milliseconds. */
const attemptTimeout = 1000

/** What went on at a client. */
export interface Account {
  /** Names of the objects whose creation was acknowledged. */
  acknowledged: string[]
  /** Names of acknowledged objects that a read did not find, or found with another content. */
  lost: string[]
  /** Requests that a server refused or did not answer; the client then turned to the next one. */
  failedRequests: number
  /** Milliseconds of each operation that did not succeed at the first server it was sent to, from its start to its success. */
  interruptions: number[]
}

/** Milliseconds without the API in all. */
export const unavailable = ({ interruptions }: Account): number => interruptions.reduce((sum, each) => sum + each, 0)

/** Writes ConfigMaps one after another and reads each back. */
export class Traffic {
  readonly account: Account = { acknowledged: [], lost: [], failedRequests: 0, interruptions: [] }
  readonly #name: string
  readonly #servers: KubeClient[]
  readonly #ending = new AbortController()
  #at = 0
  #done: Promise<void> = Promise.resolve()

  /** A client that knows these servers, and turns to the next when one fails. */
  constructor(name: string, kubeconfig: string, servers: readonly string[]) {
    const access = accessOf(parseKubeconfig(readFileSync(kubeconfig, 'utf8')))
    this.#name = name
    this.#servers = servers.map((server) => kubeClient({ ...access, server }))
  }

  start(): void {
    this.#done = this.#run()
  }

  /** Ends after the operation under way. */
  async stop(): Promise<Account> {
    this.#ending.abort()
    await this.#done
    return this.account
  }

  /** The names and contents of all objects of this client that the cluster has now. */
  async written(): Promise<Map<string, string>> {
    const { items } = await this.#call((server) =>
      server.list(core.configMap, { namespace: 'default', labelSelector: `traffic=${this.#name}` }, { timeout: 30_000 }),
    )
    return new Map(items.map((item) => [item.metadata.name ?? '', (item.data as Record<string, string> | undefined)?.value ?? '']))
  }

  async #run(): Promise<void> {
    const { acknowledged, lost } = this.account
    for (let number = 0; !this.#ending.signal.aborted; number++) {
      const name = `${this.#name}-${number}`
      await this.#call((server) => this.#write(server, name))
      acknowledged.push(name)
      // Its own last write, and one from long ago.
      for (const each of [name, acknowledged[Math.floor(Math.random() * acknowledged.length)] ?? name])
        if ((await this.#call((server) => this.#read(server, each))) !== contentOf(each)) lost.push(each)
    }
  }

  async #write(server: KubeClient, name: string): Promise<void> {
    const metadata = { name, namespace: 'default', labels: { traffic: this.#name } }
    try {
      await server.create(
        core.configMap,
        { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { value: contentOf(name) } },
        { timeout: attemptTimeout },
      )
    } catch (error) {
      // An earlier attempt whose answer did not arrive has done it.
      if (!(error instanceof KubeError && error.status === 409)) throw error
    }
  }

  async #read(server: KubeClient, name: string): Promise<string | undefined> {
    try {
      const { data } = await server.request<{ data?: Record<string, string> }>('GET', pathOf(core.configMap, 'default', name), {
        timeout: attemptTimeout,
      })
      return data?.value
    } catch (error) {
      if (error instanceof KubeError && error.status === 404) return undefined
      throw error
    }
  }

  /** Tries one server after another until one succeeds; gives up only after two minutes without any. */
  async #call<T>(operation: (server: KubeClient) => Promise<T>): Promise<T> {
    const began = performance.now()
    for (let attempt = 0; ; attempt++) {
      const server = this.#servers[this.#at % this.#servers.length] as KubeClient
      try {
        const result = await operation(server)
        if (attempt > 0) this.account.interruptions.push(performance.now() - began)
        return result
      } catch (error) {
        this.account.failedRequests++
        if (performance.now() - began > 120_000) throw error
        this.#at++
        // All of them were tried: a moment, so that a client does not spin.
        if ((attempt + 1) % this.#servers.length === 0) await Bun.sleep(20)
      }
    }
  }
}

const contentOf = (name: string) => `content of ${name}`
