/**
 * The machines a command talks to. Nothing is read and nothing is dialled before the first call: then the client
 * configuration and the flags say who, an endpoint that answers is chosen, and every call carries the nodes as metadata.
 */
import { newConnection, ownEvents } from '../../rpc/caller-metadata.ts'
import type { Channel } from '../../rpc/client/channel.ts'
import { fansOut } from '../../rpc/fan-out.ts'
import type { Methods } from '../../rpc/messages.ts'
import type { Metadata } from '../../rpc/metadata.ts'
import { methodShape } from '../../rpc/schema.ts'
import type { Init } from '../../rpc/server/method.ts'
import { ConnectError, RpcError } from '../../rpc/status.ts'
import { dialAddress, endpointOf, reachable } from './endpoint.ts'
import { describe, ExitCode, NodeErrors, UsageError } from './failure.ts'
import { type Collected, fanOut, inOrder, type Marked } from './fan-out.ts'
import type { Io } from './io.ts'
import { failure, type WithMetadata } from './reply-metadata.ts'
import { type ClusterFlags, certificateTrouble, resolveTarget, type Target } from './target.ts'

/** How one call is made. */
export interface CallOptions {
  /** Milliseconds until the call fails; streams have no timeout by default. */
  readonly timeout?: number
  readonly signal?: AbortSignal | undefined
  /** Ask this one node (metadata `node`) instead of all chosen ones. */
  readonly node?: string | undefined
  /** Have apid connect to that node for this call. */
  readonly newConnection?: boolean
  /** Takes the error of a node while the others' messages go on; without it one node's error ends the command. */
  readonly failed?: (node: string, error: Error) => void
}

type Path<Kind> = { [P in keyof Methods]: Methods[P]['kind'] extends Kind ? P : never }[keyof Methods]

type Request<P extends keyof Methods> = Init<Methods[P]['request']>

type Reply<P extends keyof Methods> = Methods[P]['reply']

/** One node's part of a reply merged from many. */
type Part<P extends keyof Methods> = Reply<P> extends { messages: readonly (infer Message)[] } ? Message & WithMetadata : never

const unaryTimeout = 30_000

/** The calls of one node: its name for the calls, undefined for the endpoint; its name for messages; aborted when its time is over. */
export type EachNode<T> = (node: string | undefined, name: string, signal: AbortSignal) => AsyncIterable<T>

/** A connection to one cluster, made on first use. */
export class Cluster {
  #flags: () => ClusterFlags = () => ({})
  #target?: Promise<Target>
  #channel?: Promise<{ channel: Channel; endpoint: string }> | undefined
  /** Endpoints that could not be reached. */
  readonly #dead = new Set<string>()
  readonly #io: Io

  constructor(io: Io, target?: Target) {
    this.#io = io
    if (target) this.#target = Promise.resolve(target)
  }

  /** Registers where the parsed flags are. */
  bind(flags: () => ClusterFlags): void {
    this.#flags = flags
  }

  /** Target nodes and credentials, from the flags and the client configuration. */
  target(): Promise<Target> {
    this.#target ??= resolveTarget(this.#flags(), this.#io)
    return this.#target
  }

  /** The nodes that were named; empty when the endpoint itself is the target. */
  async nodes(): Promise<readonly string[]> {
    return (await this.target()).nodes
  }

  /** The nodes named, or the endpoint in use when none was. */
  async nodesOrEndpoint(): Promise<readonly string[]> {
    const nodes = await this.nodes()
    return nodes.length > 0 ? nodes : [await this.peer()]
  }

  /** Refuses a command that works on one node when several are named. */
  async single(command: string): Promise<void> {
    const nodes = await this.nodes()
    if (nodes.length > 1) {
      throw new UsageError(
        `command "${command}" is not supported with multiple nodes: name one with --nodes, there are ${nodes.join(', ')}`,
      )
    }
  }

  /** The nodes that a change would reach; refused with the way out when none is named. */
  async named(action: string): Promise<readonly string[]> {
    const { nodes, source } = await this.target()
    if (nodes.length > 0) return nodes
    const known = await this.#members()
    const members = known.length > 0 ? ` (known members: ${known.join(', ')})` : ''
    throw new UsageError(
      `nodes are not set for the command: ${action} would reach ${await this.peer()}; name it with --nodes or set "nodes" in ${source}${members}`,
    )
  }

  /** Host of the endpoint in use. */
  async peer(): Promise<string> {
    return endpointOf((await this.#connected()).endpoint).host
  }

  /** The same machines, over a connection of its own. */
  async again(): Promise<Cluster> {
    return new Cluster(this.#io, await this.target())
  }

  /** The same clusters' machines reached as a maintenance node is: straight at the named nodes, without a client certificate. */
  async insecure(fingerprints: readonly string[] = []): Promise<Cluster> {
    const nodes = this.#flags().nodes ?? []
    if (nodes.length === 0) throw new UsageError('--insecure needs to know the machine: name it with --nodes')
    const tls = { insecure: true, fingerprint: fingerprints.length > 0 ? fingerprints : undefined }
    return new Cluster(this.#io, { endpoints: nodes, nodes: [], tls, source: '--nodes' })
  }

  /** One reply merged from all nodes: their messages, and their failures. Throws when all fail. */
  async ask<P extends Path<'unary'>>(path: P, request: Request<P>, options: CallOptions = {}): Promise<Part<P>[]> {
    const { messages = [] } = (await this.unary(path, request, options)) as { messages?: Part<P>[] }
    const failed = messages.flatMap(({ metadata }) => failure(metadata))
    const good = messages.filter(({ metadata }) => failure(metadata).length === 0)
    if (failed.length > 0) {
      const errors = new NodeErrors(failed)
      if (good.length === 0) throw errors
      this.#io.stderr.write(`WARNING: ${errors.message.replace(/\n*$/, '')}\n`)
    }
    return good
  }

  /** One unary call as it is. */
  async unary<P extends Path<'unary'>>(path: P, request: Request<P>, options: CallOptions = {}): Promise<Reply<P>> {
    const { timeout = unaryTimeout, signal = this.#io.signal } = options
    const metadata = { ...(await this.#metadata(path, options.node)), ...(options.newConnection && { [newConnection]: ['1'] }) }
    return this.#reaching((channel) => channel.unary(path, request, { metadata, deadline: timeout, signal }))
  }

  /** The messages of a server stream. With several nodes, a failure of one is reported on stderr while the others go on. */
  async *stream<P extends Path<'server'>>(path: P, request: Request<P>, options: CallOptions = {}): AsyncGenerator<Reply<P>, void> {
    const { timeout, signal = this.#io.signal } = options
    const metadata = await this.#metadata(path, options.node)
    const several = (metadata.nodes?.length ?? 0) > 1
    let failures = 0
    const { replies, first } = await this.#reaching(async (channel) => {
      const opened = channel.serverStream(path, request, { metadata, deadline: timeout, signal })
      return { replies: opened, first: await opened.next() }
    })
    try {
      for (let next = first; !next.done; next = await replies.next()) {
        const errors = failure((next.value as WithMetadata).metadata)
        if (errors.length === 0) yield next.value
        else if (options.failed) for (const { node, error } of errors) options.failed(node, error)
        else if (!several) throw new NodeErrors(errors)
        else this.#io.stderr.write(errors.map(({ node, error }) => `${node}: ${describe(error)}\n`).join(''))
        failures += errors.length
      }
    } finally {
      await replies.return?.()
    }
    if (failures > 0) throw new ExitCode(1)
  }

  /** A client stream: sends all requests, resolves to the reply. */
  async upload<P extends Path<'client'>>(path: P, requests: AsyncIterable<Request<P>>, options: CallOptions = {}): Promise<Reply<P>> {
    const { timeout = 0, signal = this.#io.signal } = options
    const metadata = await this.#metadata(path, options.node)
    const { channel } = await this.#connected()
    return channel.clientStream(path, requests, { metadata, deadline: timeout, signal })
  }

  /** Both sides send as they like; leaving the loop early cancels the call. Only for methods that ask one node. */
  async *bidi<P extends Path<'bidi'>>(
    path: P,
    requests: AsyncIterable<Request<P>>,
    options: CallOptions = {},
  ): AsyncGenerator<Reply<P>, void> {
    const { timeout, signal = this.#io.signal } = options
    const metadata = await this.#metadata(path, options.node)
    const { channel } = await this.#connected()
    yield* channel.bidi(path, requests, { metadata, deadline: timeout, signal })
  }

  /**
   * Runs calls that take one node only on each of the named ones, on many at the same time. Yields what they give as it
   * arrives; the failures are thrown when all have ended. `timeout` is what each of several nodes may take, in milliseconds.
   */
  async *each<T>(act: EachNode<T>, timeout: number): AsyncGenerator<T, void> {
    const { signal } = this.#io
    const nodes = await this.nodes()
    if (nodes.length > 1) yield* fanOut(nodes, (node, own) => act(node, node, own), { timeout, signal })
    else yield* act(nodes[0], nodes[0] ?? (await this.peer()), signal)
  }

  /** What `each` gives, in the order of the nodes, and the failures of some of them. Throws when all fail. */
  async collect<T>(act: EachNode<T>, timeout: number): Promise<Collected<T>> {
    const marked: EachNode<Marked<T>> = async function* (node, name, signal) {
      for await (const item of act(node, name, signal)) yield { node: name, item }
    }
    return inOrder(await this.nodes(), this.each(marked, timeout))
  }

  /** The node a message came from: its metadata, else the endpoint. */
  nodeOf(message: WithMetadata, peer: string): string {
    return message.metadata?.hostname || peer
  }

  /** Ends the connection. */
  async close(): Promise<void> {
    const open = this.#channel
    this.#channel = undefined
    if (open) await open.then(({ channel }) => channel.close()).catch(() => {})
  }

  async #metadata(path: string, node: string | undefined): Promise<Metadata> {
    const { nodes, cluster } = await this.target()
    const metadata: Record<string, readonly string[]> = cluster ? { cluster: [cluster] } : {}
    if (path === 'machine.MachineService/Events') metadata[ownEvents] = ['1']
    if (node) metadata.node = [node]
    else if (nodes.length > 0 && fansOut(methodShape(path))) metadata.nodes = nodes
    else if (nodes.length === 1) metadata.node = nodes
    else if (nodes.length > 1)
      throw new UsageError(`${path} supports one node at a time: name one with --nodes, there are ${nodes.join(', ')}`)
    return metadata
  }

  /** Makes a call; when the endpoint turns out to be unreachable, the next one is taken until none is left. */
  async #reaching<T>(call: (channel: Channel) => Promise<T>): Promise<T> {
    for (;;) {
      const { channel, endpoint } = await this.#connected()
      try {
        return await call(channel)
      } catch (error) {
        const unreachable = error instanceof RpcError && error.status === 'Unavailable'
        // A server that refuses the certificate often just ends the connection.
        if (unreachable) await this.#checkCertificate(error)
        if (!(error instanceof ConnectError) || !unreachable) throw error
        this.#dead.add(endpoint)
        const { endpoints } = await this.target()
        const left = endpoints.some((one) => !this.#dead.has(one))
        await this.close()
        if (left) continue
        this.#dead.clear()
        throw error
      }
    }
  }

  async #checkCertificate(cause: RpcError): Promise<void> {
    const trouble = certificateTrouble(await this.target(), this.#io.now())
    if (trouble) throw Object.assign(new UsageError(trouble), { cause })
  }

  #connected(): Promise<{ channel: Channel; endpoint: string }> {
    this.#channel ??= this.#connect().catch((error: unknown) => {
      // The next call tries again: all endpoints restart at once when a cluster is restored.
      this.#channel = undefined
      throw error
    })
    return this.#channel
  }

  async #connect(): Promise<{ channel: Channel; endpoint: string }> {
    const target = await this.target()
    const rpc = import('../../rpc/client/channel.ts')
    if (target.socket) {
      const metadata = { 'talos-role': target.roles ?? [] }
      return { channel: (await rpc).connect({ unix: target.socket }, { metadata }), endpoint: 'localhost' }
    }
    const alive = target.endpoints.filter((endpoint) => !this.#dead.has(endpoint))
    const endpoint = alive.length === 1 ? (alive[0] ?? '') : await reachable(alive, { signal: this.#io.signal })
    const { connect } = await rpc
    return { channel: connect({ address: dialAddress(endpoint), tls: target.tls }, { connectTimeout: 5000 }), endpoint }
  }

  async #members(): Promise<string[]> {
    const members: string[] = []
    try {
      const { channel } = await this.#connected()
      const request = { namespace: 'cluster', type: 'Members.cluster.talos.dev' } as const
      for await (const reply of channel.serverStream('cosi.resource.State/List', request, { deadline: 2000 })) {
        const id = reply.resource?.metadata?.id
        if (id) members.push(id)
      }
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
    }
    return members
  }
}
