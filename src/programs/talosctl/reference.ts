/** Reference pages of the commands, as Markdown and for man(1): both from the declarations that parse the command line. */
import type { Argument, Command, Option } from 'commander'
import { OutputOption } from './output/output.ts'
import { schemaText } from './output/schema.ts'

/** A command with its full name, flags of those above it included. */
export interface Page {
  /** "talosctl image list". */
  readonly path: string
  readonly command: Command
  readonly options: readonly Option[]
}

/** The pages of a command and of all below it, hidden ones left out. */
export function pagesOf(command: Command, above = 'talosctl', inherited: readonly Option[] = []): Page[] {
  const path = `${above} ${command.name()}`
  const options = [...command.options, ...inherited].filter(({ hidden }) => !hidden)
  const below = command.createHelp().visibleCommands(command)
  return [{ path, command, options }, ...below.filter((one) => one.name() !== 'help').flatMap((one) => pagesOf(one, path, options))]
}

/** The synopsis: "talosctl read <path> [flags]". */
export function synopsis({ path, command, options }: Page): string {
  const below = command.commands.length > 0 ? ' <command>' : ''
  const operands = command.registeredArguments.map((one) => ` ${operand(one)}`).join('')
  return `${path}${below}${operands}${options.length > 0 ? ' [flags]' : ''}`
}

function operand(one: Argument): string {
  const name = `${one.name()}${one.variadic ? '...' : ''}`
  return one.required ? `<${name}>` : `[${name}]`
}

/** The text of the command's help after its flags: its examples, without their title. */
export function examples(command: Command): string {
  let text = ''
  const write = (part: string) => {
    text += part
  }
  // Commander's own event, which its types leave out.
  const emitter = command as unknown as { emit(event: string, context: object): void }
  emitter.emit('afterHelp', { error: false, command, write })
  return text.replace(/^\s*Examples:\n/, '').replace(/\s+$/, '')
}

function flagText(option: Option): { flags: string; about: string } {
  const choices = option.argChoices ? `: ${option.argChoices.join(', ')}` : ''
  const value = option.defaultValue
  const shown = value === undefined || value === '' || value === false || (Array.isArray(value) && value.length === 0)
  const preset = shown ? '' : ` (default: ${option.defaultValueDescription ?? JSON.stringify(value)})`
  return { flags: option.flags, about: `${option.description}${choices}${preset}` }
}

/** What a command prints as JSON and YAML. */
function outputs({ options }: Page): { about: string; schema: string }[] {
  const option = options.find((one) => one instanceof OutputOption)
  if (!option) return []
  const others = Object.entries(option.others).map(([use, schema]) => ({ about: `Items ${use}:`, schema: schemaText(schema) }))
  return [{ about: `\`--output json\` and \`yaml\` print ${option.about}:`, schema: schemaText(option.item) }, ...others]
}

/** All commands on one page of Markdown. */
export function markdown(pages: readonly Page[], about: string): string {
  const parts = pages.map((page) => {
    const { command, path, options } = page
    const lines = [`## ${path}`, '', command.description(), '', '```', synopsis(page), '```', '']
    if (command.aliases().length > 0)
      lines.push(
        `Also: ${command
          .aliases()
          .map((one) => `\`${one}\``)
          .join(', ')}`,
        '',
      )
    const described = command.registeredArguments.filter(({ description }) => description)
    if (described.length > 0) lines.push(...described.map((one) => `- \`${operand(one)}\`: ${cell(one.description)}`), '')
    if (options.length > 0)
      lines.push(
        '| flag | |',
        '|---|---|',
        ...options.map((one) => flagText(one)).map((one) => `| \`${one.flags.replaceAll('|', '\\|')}\` | ${cell(one.about)} |`),
        '',
      )
    lines.push(...outputs(page).flatMap(({ about, schema }) => [about, '', '```', schema, '```', '']))
    const shown = examples(command)
    if (shown) lines.push('```', shown.replace(/^ {2}/gm, ''), '```', '')
    const below = command
      .createHelp()
      .visibleCommands(command)
      .filter((one) => one.name() !== 'help')
    if (below.length > 0)
      lines.push(...below.map((one) => `- [${path} ${one.name()}](#${anchor(`${path} ${one.name()}`)}): ${summaryOf(one)}`), '')
    return lines.join('\n')
  })
  return `# talosctl\n\n${about}\n\n${parts.join('\n')}`
}

function anchor(title: string): string {
  return title.toLowerCase().replaceAll(' ', '-')
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ').replaceAll('<', '&lt;')
}

function summaryOf(command: Command): string {
  return command.summary() || command.description()
}

/** One command as a page of man(1): name and text of the file. */
export function manPage(page: Page, others: readonly Page[], version: string): { name: string; text: string } {
  const { command, path, options } = page
  const title = path.replaceAll(' ', '-')
  const lines = [
    `.TH "${title.toUpperCase()}" "1" "" "${roff(version)}" "talosctl"`,
    '.SH NAME',
    `${roff(title)} \\- ${roff(summaryOf(command))}`,
    '.SH SYNOPSIS',
    `.B ${roff(synopsis(page))}`,
    '.SH DESCRIPTION',
    roff(command.description()),
  ]
  for (const one of command.registeredArguments) if (one.description) lines.push('.TP', `.I ${roff(operand(one))}`, roff(one.description))
  if (options.length > 0) lines.push('.SH FLAGS')
  for (const option of options) {
    const { flags, about } = flagText(option)
    lines.push('.TP', `.B ${roff(flags)}`, roff(about))
  }
  const printed = outputs(page)
  if (printed.length > 0) lines.push('.SH OUTPUT')
  for (const { about, schema } of printed) lines.push(roff(about.replaceAll('`', '')), '.nf', ...schema.split('\n').map(roff), '.fi')
  const shown = examples(command)
  if (shown) lines.push('.SH EXAMPLES', '.nf', ...shown.split('\n').map((text) => roff(text)), '.fi')
  const near = others.filter((other) => other.path !== path && (other.path.startsWith(`${path} `) || path.startsWith(`${other.path} `)))
  if (near.length > 0) lines.push('.SH SEE ALSO', near.map((other) => `.BR ${roff(other.path.replaceAll(' ', '-'))} (1)`).join('\n'))
  return { name: `${title}.1`, text: `${lines.join('\n')}\n` }
}

/** Text that roff takes as it is. */
function roff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^([.'])/gm, '\\&$1')
    .replaceAll('"', '\\(dq')
}
