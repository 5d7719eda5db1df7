import { KubeSpanConfig } from './resources/kube-span-config.ts'
import { KubeSpanEndpoint } from './resources/kube-span-endpoint.ts'
import { KubeSpanIdentity } from './resources/kube-span-identity.ts'
import { KubeSpanPeerSpec } from './resources/kube-span-peer-spec.ts'
import { KubeSpanPeerStatus } from './resources/kube-span-peer-status.ts'

/** The kinds of resources of this area. */
export const resources = [KubeSpanConfig, KubeSpanEndpoint, KubeSpanIdentity, KubeSpanPeerSpec, KubeSpanPeerStatus]
