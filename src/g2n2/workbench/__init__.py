"""The workbench: a local web page from operations to grammar, proof, network and power.

    state          what a page shows, and the query string of its permalink
    languages      typed text -> grammar, or a fault at its exact character
    chain          a language reduced: removed rules, obligations, their pattern graphs
    network        the plan of a grammar: costs, and the share of every rule
    pairs          two graphs: what tells them apart, by which sentence, round by round
    files          a dropped certificate or network: its grammar, its plan, whether it holds
    takeaway       certificate, LaTeX, SVG, Python and shell commands to take along
    jobs           computations in processes of their own, with progress, cancelled by ending them
    svg, views     the values above as SVG and HTML strings
    session, server  the page itself (NiceGUI)

All but `session` and `server` are pure functions that need no browser and no NiceGUI.
"""
