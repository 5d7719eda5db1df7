/** The control group of a node below every hierarchy's root. */
export function nodeCgroup(id: string, node: string): string {
  return `${clusterCgroup(id)}/${node}`
}

/** The control group that holds a cluster's nodes. */
export function clusterCgroup(id: string): string {
  return `/ichor-${id}`
}
