/** The syntax of names in Kubernetes (labels, annotations, taints). */

const name = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/
const domain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

/** What is wrong with the key of a label, annotation or taint, if anything. */
export function qualifiedNameProblem(key: string): string | undefined {
  const parts = key.split('/')
  const [first = ''] = parts
  const bare = parts.at(-1) ?? ''
  if (parts.length > 2) return `${JSON.stringify(key)} has more than one "/"`
  if (parts.length === 2 && (!domain.test(first) || first.length > 253))
    return `${JSON.stringify(first)} is not a domain name of at most 253 characters`
  if (bare.length > 63) return `${JSON.stringify(bare)} is longer than 63 characters`
  if (!name.test(bare))
    return `${JSON.stringify(bare)} may hold only letters, digits, "-", "_" and "." and begins and ends with a letter or digit`
  return undefined
}

/** What is wrong with the value of a label, if anything. */
export function labelValueProblem(value: string): string | undefined {
  if (value.length > 63) return `${JSON.stringify(value)} is longer than 63 characters`
  if (value !== '' && !name.test(value))
    return `${JSON.stringify(value)} may hold only letters, digits, "-", "_" and "." and begins and ends with a letter or digit`
  return undefined
}

/** True for a DNS name that Kubernetes accepts. */
export const isDomainName = (value: string): boolean => value.length <= 253 && domain.test(value)
