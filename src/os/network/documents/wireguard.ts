import { cidr, described, duration, integer, ipAndPort, listOf, needed, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { milliseconds } from '../../../wire/duration.ts'
import { linkFields, linkRules } from './link-fields.ts'

/** True for a WireGuard key: base64 of 32 bytes. */
export const isWireguardKey = (key: string): boolean => /^[A-Za-z0-9+/]{43}=$/.test(key)

/** Configures a WireGuard link. */
export const WireguardConfig = defineDocument({
  kind: 'WireguardConfig',
  description: 'A WireGuard link.',
  nameKey: 'name',
  schema: section({
    name: described(text, 'The unique name of this document among those of its kind.'),
    privateKey: described(needed(text), "The tunnel's private key, base64 of 32 bytes."),
    listenPort: described(integer, 'The UDP port others reach us at; chosen by the kernel when 0.'),
    firewallMark: described(integer, 'The mark packets of the tunnel leave with.'),
    peers: described(
      listOf(
        section({
          publicKey: described(needed(text), 'The public key of the peer, base64 of 32 bytes.'),
          presharedKey: described(text, 'A secret shared with the peer, base64 of 32 bytes.'),
          endpoint: described(ipAndPort, 'Address and port of the peer.'),
          persistentKeepaliveInterval: described(duration, 'How often something is sent even if there is nothing to say.'),
          allowedIPs: described(listOf(cidr), 'Networks behind the peer.'),
        }),
      ),
      'Who is at the other end.',
    ),
    ...linkFields,
  }),
  rules(link, report) {
    linkRules(link, report)
    if (!isWireguardKey(link.privateKey ?? '')) report.error(['privateKey'], 'a private key is required: base64 of 32 bytes')
    if (link.listenPort !== undefined && (link.listenPort < 0 || link.listenPort > 65535))
      report.error(['listenPort'], 'a port must be from 0 to 65535')
    for (const [index, peer] of (link.peers ?? []).entries()) {
      const at = (key: string) => ['peers', index, key]
      if (!isWireguardKey(peer.publicKey ?? '')) report.error(at('publicKey'), 'a public key is required: base64 of 32 bytes')
      if (peer.presharedKey && !isWireguardKey(peer.presharedKey)) report.error(at('presharedKey'), 'not base64 of 32 bytes')
      if (milliseconds(peer.persistentKeepaliveInterval) < 0) report.error(at('persistentKeepaliveInterval'), 'cannot be negative')
    }
  },
})
