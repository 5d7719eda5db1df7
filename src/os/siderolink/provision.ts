/** The call that admits a machine to the network of its management server. */
import { connect } from '../../rpc/client/channel.ts'
import type { Target } from '../../rpc/client/dial.ts'
import type { sidero } from '../../rpc/messages.ts'
import { DecodeError } from '../../wire/decode-error.ts'
import { parseHostPort, parseIpPort } from '../../wire/host-port.ts'
import { parseIp } from '../../wire/ip.ts'
import { tryPrefix } from '../../wire/prefix.ts'
import { keyBytes } from '../../wire/wireguard/keys.ts'

/** The machine that requests admission. */
export interface Applicant {
  readonly uuid: string
  readonly publicKey: string
  readonly joinToken: string
  readonly uniqueToken: string
  /** The tag of the release. */
  readonly version: string
  readonly tunnel: boolean
}

/** The place in the server's network. */
export interface Admission {
  /** The server's WireGuard endpoints as host:port, in the order in which they are tried. */
  readonly endpoints: readonly string[]
  readonly serverKey: string
  /** The machine's address with the length of the prefix. */
  readonly address: string
  readonly serverAddress: string
  /** What stands for the machine in a tunnel over gRPC, as [address]:port; undefined without one. */
  readonly tunnelAddress: string | undefined
}

/** Milliseconds for the answer. */
const answerTimeout = 30_000
const maxEndpoints = 32

/** Requests admission. Rejects with RpcError, or DecodeError for an answer that makes no sense. */
export async function provision(target: Target, applicant: Applicant, signal: AbortSignal): Promise<Admission> {
  const channel = connect(target)
  try {
    const reply = await channel.unary(
      'sidero.link.ProvisionService/Provision',
      {
        nodeUuid: applicant.uuid,
        nodePublicKey: applicant.publicKey,
        nodeUniqueToken: applicant.uniqueToken,
        talosVersion: applicant.version,
        ...(applicant.joinToken && { joinToken: applicant.joinToken }),
        ...(applicant.tunnel && { wireguardOverGrpc: true }),
      },
      { deadline: answerTimeout, signal },
    )
    return readAdmission(reply)
  } finally {
    channel.close()
  }
}

/** Checks an answer, and undoes the exchange of the first and the last endpoint. Throws DecodeError. */
export function readAdmission(reply: sidero.link.ProvisionResponse): Admission {
  const { serverPublicKey, nodeAddressPrefix, serverAddress, grpcPeerAddrPort } = reply
  const endpoints = exchanged(reply.serverEndpoint)
  const tunnelAddress = grpcPeerAddrPort || undefined
  const valid = {
    server_endpoint: endpoints.length <= maxEndpoints && endpoints.every((each) => (parseHostPort(each)?.port ?? 0) > 0),
    server_public_key: isKey(serverPublicKey),
    node_address_prefix: isNodeAddress(nodeAddressPrefix),
    server_address: parseIp(serverAddress)?.length === 16,
    grpc_peer_addr_port: tunnelAddress ? parseIpPort(tunnelAddress) !== undefined : endpoints.length > 0,
  }
  const [wrong] = Object.entries(valid).find(([, right]) => !right) ?? []
  if (wrong) throw new DecodeError('answer of the management server', 0, `${wrong} is missing or invalid`)
  return { endpoints, serverKey: serverPublicKey, address: nodeAddressPrefix, serverAddress, tunnelAddress }
}

function exchanged(endpoints: readonly string[]): string[] {
  const [first, ...rest] = endpoints
  const last = rest.pop()
  return first === undefined ? [] : last === undefined ? [first] : [last, ...rest, first]
}

/** An IPv6 address in a network of its own: a shorter prefix would draw the traffic of others into the link. */
function isNodeAddress(text: string): boolean {
  const prefix = tryPrefix(text)
  return prefix?.bytes.length === 16 && prefix.bits >= 64
}

function isKey(text: string): boolean {
  try {
    return keyBytes(text).length > 0
  } catch {
    return false
  }
}
