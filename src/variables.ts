import { BlockList, isIP } from 'node:net';

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Creates typed readers of an environment's variables. For an invalid variable, they return an arbitrary value of its
 * type.
 *
 * @param problems gets a message for each invalid variable, with its name but never its value.
 */
export function variablesOf(environment: Environment, problems: string[]) {
  /** Reads a variable. An empty one counts as absent. */
  const text = (name: string) => environment[name] || undefined;
  return {
    text,
    integer(name: string, fallback: number, min: number, max: number): number {
      const value = text(name);
      const number = value === undefined ? fallback : Number(value);
      if (Number.isInteger(number) && number >= min && number <= max) return number;
      problems.push(`${name} must be an integer from ${min} to ${max}`);
      return fallback;
    },
    flag(name: string, fallback: boolean): boolean {
      const value = text(name) ?? (fallback ? 'on' : 'off');
      if (value !== 'on' && value !== 'off') problems.push(`${name} must be on or off`);
      return value === 'on';
    },
    oneOf(name: string, values: readonly string[], fallback: string): string {
      const value = text(name) ?? fallback;
      if (!values.includes(value)) problems.push(`${name} must be one of ${values.join(', ')}`);
      return value;
    },
    httpUrl(name: string): string | undefined {
      const value = text(name);
      if (value !== undefined && !isUrlOf(value, ['http:', 'https:'])) {
        problems.push(`${name} must be an http or https URL`);
      }
      return value;
    },
    /** Reads the URL of a forward proxy, which may contain a password. */
    proxyUrl(name: string): string | undefined {
      const value = text(name);
      const url = value !== undefined && isUrlOf(value, ['http:', 'https:']) ? new URL(value) : undefined;
      const isDecodable = url && /^([^%]|%[0-7][0-9a-f])*$/i.test(url.username + url.password);
      const isOriginOnly = url && url.pathname === '/' && url.search === '' && url.hash === '';
      if (value !== undefined && !(isDecodable && isOriginOnly)) {
        const example = 'http://proxy.example:3128';
        problems.push(`${name} must be an http or https URL without a path, such as ${example}`);
      }
      return value;
    },
    /** Reads a list such as `address,network/prefix`; empty if the variable is absent. */
    networks(name: string): BlockList {
      const networks = new BlockList();
      for (const entry of text(name)?.split(',') ?? []) {
        if (!addNetwork(networks, entry.trim())) {
          problems.push(
            `${name} must be address[,address…], each an IP address or a network such as 10.0.0.0/8`,
          );
          break;
        }
      }
      return networks;
    },
  };
}

/** Adds an address or a network in CIDR notation. @returns false if it is neither. */
function addNetwork(networks: BlockList, entry: string): boolean {
  const [, address = '', prefix] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(entry) ?? [];
  const version = isIP(address);
  const bits = version === 6 ? 128 : 32;
  const length = prefix === undefined ? bits : Number(prefix);
  if (version === 0 || length > bits) return false;
  networks.addSubnet(address, length, version === 6 ? 'ipv6' : 'ipv4');
  return true;
}

/** Reports whether a value is a URL with one of these protocols. */
export function isUrlOf(value: string, protocols: readonly string[]): boolean {
  return URL.canParse(value) && protocols.includes(new URL(value).protocol);
}
