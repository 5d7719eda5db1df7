import { KubeSpanConfig } from './resources/kube-span-config.ts'
import { KubeSpanEndpoint } from './resources/kube-span-endpoint.ts'
import { KubeSpanIdentity } from './resources/kube-span-identity.ts'
import { KubeSpanPeerSpec, KubeSpanPeerStatus } from './resources/kube-span-peer.ts'

/** The kinds of resources of this area. */
export const resources = [KubeSpanConfig, KubeSpanEndpoint, KubeSpanIdentity, KubeSpanPeerSpec, KubeSpanPeerStatus]
