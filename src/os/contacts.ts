/**
 * Parties outside of this machine that a controller or service connects to (their field `contacts`): where one fails, an explanation
 * checks whether that party answers.
 */
export const contacts = {
  /** The cluster's endpoint: the Kubernetes API, and trustd for workers. */
  controlPlane: 'control plane',
  timeServers: 'time servers',
} as const
