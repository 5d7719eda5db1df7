/**
 * PRODUCT.yaml of a release, as the certification programme requires it (cncf/k8s-conformance). Addresses and the logo are added
 * when the results are submitted.
 */
export function productYaml(version: string): string {
  const fields = {
    vendor: 'Ichor',
    name: 'Ichor',
    version,
    website_url: '',
    repo_url: '',
    documentation_url: '',
    product_logo_url: '',
    type: 'distribution',
    description: 'A Kubernetes operating system that is managed only through an API.',
    contact_email_address: '',
  }
  return Object.entries(fields)
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}\n`)
    .join('')
}
