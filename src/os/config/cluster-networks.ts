/** The networks of pods and services; without them in the configuration, or with an empty list, the defaults of the field. */
import type { ClusterSection } from './declared.ts'

export const defaultPodSubnet = '10.244.0.0/16'
export const defaultServiceSubnet = '10.96.0.0/12'
/** Networks of generated configurations whose nodes have IPv6 addresses. */
export const ipv6PodSubnet = 'fc00:db8:10::/56'
export const ipv6ServiceSubnet = 'fc00:db8:20::/112'

/** Networks of the pods. */
export const podSubnets = (cluster: ClusterSection | undefined): string[] => filled(cluster?.network?.podSubnets, defaultPodSubnet)

/** Networks of the services. */
export const serviceSubnets = (cluster: ClusterSection | undefined): string[] =>
  filled(cluster?.network?.serviceSubnets, defaultServiceSubnet)

const filled = (subnets: string[] | undefined, otherwise: string): string[] => (subnets?.length ? subnets : [otherwise])
